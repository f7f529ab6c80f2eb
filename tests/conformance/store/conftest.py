from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.clock import SystemClock
from dispatcher.store.engine import Database, open_engine
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.schema import upgrade


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without a schema: the same suite runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def ledger_url(empty_url: str) -> str:
    await upgrade(empty_url)
    return empty_url


@pytest.fixture
async def database(ledger_url: str) -> AsyncIterator[Database]:
    async with open_engine(ledger_url) as database:
        yield database


@pytest.fixture
async def ledger(database: Database) -> AsyncIterator[SqlLedger]:
    ledger = SqlLedger(database, clock=SystemClock())
    async with ledger.running():
        yield ledger


@pytest.fixture
async def shared_postgres(postgres_url: str) -> str:
    """A PostgreSQL database with the schema, for tests with several replicas."""
    await upgrade(postgres_url)
    return postgres_url
