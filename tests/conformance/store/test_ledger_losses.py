"""What a ledger makes of connections that break, locks that last and disks that are full."""

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.request import AttemptStatus, ResultKind
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import ReplicaId
from dispatcher.store import direct_sqlite
from dispatcher.store.changes import ChangeSet
from dispatcher.store.direct import CLAIM_MARGIN_MS, Written
from dispatcher.store.direct_postgres import PostgresWriter
from dispatcher.store.engine import Database, connect_sqlite, open_engine
from dispatcher.store.failure import LostError
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.schema import upgrade
from tests.conformance.store.ledger_requests import (
    AGENT,
    accepted,
    claimed,
    collect,
    offer_of,
    replica,
    with_attempt,
)

LIMIT_S = 20
END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
LOCK = "SELECT 1 FROM requests WHERE request_id = $1 FOR UPDATE"
IS_WAITED_FOR = (
    "SELECT count(*) > 0 FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def let_the_disk_be_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the writers' connections no page more than the file has when they are made."""

    def connect(database: Database) -> sqlite3.Connection:
        connection = connect_sqlite(database)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(direct_sqlite, "connect_sqlite", connect)


async def test_a_full_disk_is_an_outage_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    await upgrade(url)
    let_the_disk_be_full(monkeypatch)
    async with replica(url) as ledger:
        state = await accepted(ledger, claimed(offer_of()))

        for _ in range(2):
            with pytest.raises(UnavailableError):
                await ledger.update(state.request.request_id, collect("x" * 200_000))

        assert await ledger.read(state.request.request_id) == state
        assert await ledger.update(state.request.request_id, collect("short"))


async def test_versions_given_again_after_a_failover_are_not_taken_for_the_old_ones(shared_postgres: str):
    async with (
        asyncio.timeout(LIMIT_S),
        replica(shared_postgres) as ours,
        replica(shared_postgres) as theirs,
    ):
        state = await accepted(ours, claimed(offer_of()))
        request_id = state.request.request_id
        await ours.update(request_id, with_attempt(timeout_ms=1))
        server = await asyncpg.connect(shared_postgres)
        await server.execute(END_OTHERS)
        # The server that takes over never got that change, and another replica makes its own.
        await server.execute("UPDATE attempts SET timeout_ms = 10000")
        await server.execute("UPDATE requests SET version = 0")
        await server.close()
        other = await theirs.update(request_id, collect("theirs"))

        change = await ours.update(request_id, with_attempt(timeout_ms=2))

    assert other is not None
    assert change is not None
    assert change.before == other.after
    assert change.after.attempts[0].status is AttemptStatus.SUCCEEDED


async def test_a_change_whose_answer_got_lost_is_told_as_made(
    shared_postgres: str, monkeypatch: pytest.MonkeyPatch
):
    """Else nobody would send the attempts it made, and its own result would be its duplicate."""
    real = PostgresWriter.update

    async def update(writer: PostgresWriter, changes: ChangeSet) -> Written:
        await real(writer, changes)
        raise LostError("the connection broke")

    monkeypatch.setattr(PostgresWriter, "update", update)
    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as ledger:
        state = await accepted(ledger, claimed(offer_of()))

        change = await ledger.update(state.request.request_id, collect("done"))

        server = await asyncpg.connect(shared_postgres)
        kinds = [row["kind"] for row in await server.fetch("SELECT kind FROM results")]
        await server.close()
    assert change is not None
    assert change.before == state
    assert len(change.new_attempts()) == 1
    assert kinds == [ResultKind.ACCEPTED]


async def test_a_claim_that_ends_while_a_lock_is_waited_for_is_seen(shared_postgres: str):
    async with (
        asyncio.timeout(LIMIT_S),
        replica(shared_postgres) as ours,
        replica(shared_postgres) as theirs,
    ):
        locking, looking = [await asyncpg.connect(shared_postgres) for _ in range(2)]
        await accepted(ours, claimed(offer_of()))
        state = await accepted(ours, claimed(offer_of(), for_ms=CLAIM_MARGIN_MS + 500))
        async with asyncio.TaskGroup() as group:
            transaction = locking.transaction()
            await transaction.start()
            await locking.execute(LOCK, state.request.request_id)
            changing = group.create_task(ours.update(state.request.request_id, with_attempt(timeout_ms=5)))
            while not await looking.fetchval(IS_WAITED_FOR):
                await SystemClock().sleep(0.01)
            while not await theirs.claim_due(ReplicaId("other"), {AGENT: 9}, 60):
                await SystemClock().sleep(0.05)
            await transaction.rollback()
        await locking.close()
        await looking.close()

    change = changing.result()
    assert change is not None
    assert change.before is not None
    assert change.before.attempts[0].claimed_by == "other"


async def test_a_statement_without_an_answer_is_not_sent_twice(shared_postgres: str):
    clock = SystemClock()
    async with asyncio.timeout(LIMIT_S), open_engine(shared_postgres, statement_s=0.5) as database:
        ledger = SqlLedger(database, clock=clock)
        async with ledger.running():
            await accepted(ledger)
            server = await asyncpg.connect(shared_postgres)
            async with server.transaction():
                await server.execute("LOCK TABLE requests")
                begun = clock.monotonic()
                with pytest.raises(UnavailableError):
                    await accepted(ledger)
                took = clock.monotonic() - begun
            await server.close()

            offer = offer_of()
            change = await accepted(ledger, replace(offer, idempotency_key=None))

    assert 0.5 <= took < 1.0
    assert change.request.request_id == offer.request_id
