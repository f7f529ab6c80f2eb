from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from dispatcher.clock import SystemClock
from dispatcher.routing.background import contrast_digest
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration_book import CalibrationBook
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.router import Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.store.calibrations import SqlCalibrations
from dispatcher.store.engine import Database, open_engine
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.replicas import Replica
from tests.routing.conftest import MemoryDirectory


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without a schema: the same suite runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def ledger_url(store_url: str) -> str:
    """A database with the schema, of either kind."""
    return store_url


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
def shared_postgres(upgraded_postgres_url: str) -> str:
    """A PostgreSQL database with the schema, for tests with several replicas."""
    return upgraded_postgres_url


@pytest.fixture
async def other_database(ledger_url: str) -> AsyncIterator[Database]:
    async with open_engine(ledger_url) as opened:
        yield opened


@pytest.fixture
def encoder():
    batching = BatchingEncoder(HashingEncoder())
    yield batching
    batching.close()


@pytest.fixture
def replica_of(encoder):
    def build(database: Database) -> Replica:
        router = ReindexingRouter(
            lambda chosen: Router(
                encoder=chosen,
                directory=MemoryDirectory(),
                make_index=ExactIndex,
                rules=RoutingRules(),
                clock=SystemClock(),
            ),
            encoder,
        )
        store = SqlCalibrations(database)
        return Replica(
            router=router, store=store, book=CalibrationBook(store, router, contrast=contrast_digest())
        )

    return build


@pytest.fixture
def one(replica_of: Callable[[Database], Replica], database: Database) -> Replica:
    return replica_of(database)


@pytest.fixture
def other(replica_of: Callable[[Database], Replica], other_database: Database) -> Replica:
    return replica_of(other_database)
