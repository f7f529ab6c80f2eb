"""Real services of a test's own, for tests that break them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import rabbitmq
from tests.services.environment import is_ci
from tests.services.rabbitmq import RabbitNode


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[RabbitNode]:
    """A broker that the test may start (it is not running yet), stop and kill."""
    missing = rabbitmq.missing()
    if missing:
        (pytest.fail if is_ci() else pytest.skip)(missing)
    node = RabbitNode(tmp_path / "broker")
    try:
        yield node
    finally:
        node.close()
