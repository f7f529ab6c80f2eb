"""Databases of either kind, and real services of a test's own for tests that break them."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dispatcher.store.schema import upgrade
from tests.services import rabbitmq
from tests.services.databases import fresh_database
from tests.services.environment import is_ci
from tests.services.rabbitmq import RabbitNode


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without rows: the same tests run on both kinds."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("upgraded_sqlite_url"))
    return str(request.getfixturevalue("upgraded_postgres_url"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and no row: copies cost a tenth of a migration each."""
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    with asyncio.Runner() as runner:
        runner.run(upgrade(f"sqlite:///{path}"))
    return path


@pytest.fixture
def upgraded_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A file of this test's own with the schema."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'ledger.db')}"


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """The name of a database with the schema and no row."""
    with asyncio.Runner() as runner:
        made = fresh_database(postgres_server)
        stack = AsyncExitStack()
        url = runner.run(stack.enter_async_context(made))
        try:
            runner.run(upgrade(url))
            yield urlsplit(url).path.removeprefix("/")
        finally:
            runner.run(stack.aclose())


@pytest.fixture
async def upgraded_postgres_url(postgres_server: str, postgres_template: str) -> AsyncIterator[str]:
    """As `postgres_url`, with the schema."""
    async with fresh_database(postgres_server, postgres_template) as url:
        yield url


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
