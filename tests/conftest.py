"""Real services and data for the tests; what is missing skips locally and fails in CI."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.services.databases import fresh_database
from tests.services.environment import DATA, POSTGRES, RABBITMQ, is_ci, variable

_MARKS = {
    "amqp_url": "rabbitmq",
    "own_broker": "rabbitmq",
    "postgres_url": "postgres",
    "postgres_server": "postgres",
    "data_dir": "data",
}
_RULES = frozenset({"dispatch", "intents", "protocol", "registry", "routing", "tuning"})
"""Rooms whose tests reach every branch of the pure rules; tracing others costs up to half of their time."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark each test with the services its fixtures use, and those that coverage needn't look at."""
    for item in items:
        room = item.path.relative_to(Path(__file__).parent).parts[0]
        if room not in _RULES and not room.startswith("test_"):
            item.add_marker("no_cover")
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _MARKS:
                item.add_marker(_MARKS[fixture])


def _service(name: str) -> str:
    """The address of a service; without one the test skips, or fails in CI."""
    address = variable(name)
    if address is not None:
        return address
    reason = f"{name} is not set; run `python -m tests.services -- pytest`"
    if is_ci():
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def amqp_url() -> str:
    """A broker shared by all tests; use names of your own (a fresh `Topology.prefix`)."""
    return _service(RABBITMQ)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """A server shared by all tests."""
    return _service(POSTGRES)


@pytest.fixture
async def postgres_url(postgres_server: str) -> AsyncIterator[str]:
    """A fresh, empty database of this test's own, dropped afterwards."""
    async with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the evaluation data."""
    folder = Path(variable(DATA) or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}; set {DATA}")
    return folder
