"""Whatever happens to one task, in whatever order: it ends once, with one result, after three attempts."""

import pytest

from tests.faults.model import Model


@pytest.mark.parametrize(
    ("idempotent", "durable", "depth"), [(True, True, 9), (True, False, 8), (False, True, 11)]
)
@pytest.mark.timeout(120)
def test_every_state_keeps_the_invariants(idempotent: bool, durable: bool, depth: int) -> None:
    model = Model(idempotent=idempotent, durable=durable)

    states = model.explore(depth)

    print(f"{states} states within {depth} events")
    assert states > 10_000
    assert model.doubled == []
