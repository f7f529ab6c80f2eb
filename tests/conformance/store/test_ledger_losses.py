"""What a ledger makes of connections that break, locks that last and disks that are full."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import Decide, Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import ReplicaId
from dispatcher.records import replace
from dispatcher.store.changes import ChangeSet
from dispatcher.store.database_time import STALE_S, DatabaseTime
from dispatcher.store.direct import CLAIM_MARGIN_MS, Written
from dispatcher.store.direct_postgres import PostgresWriter
from dispatcher.store.direct_sqlite import SqliteWriter
from dispatcher.store.engine import Database, connect_sqlite, open_engine
from dispatcher.store.failure import LostError
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.recent import RecentStates, Stored
from dispatcher.store.schema import upgrade
from dispatcher.store.states import read_stored
from dispatcher.store.updates import DirectUpdates, Ruling, update_group
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


def connect_to_full_disk(database: Database) -> sqlite3.Connection:
    """The file may have no page more than it has when the connection is made."""
    connection = connect_sqlite(database)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return connection


def changes_of(state: RequestState, decide: Decide) -> ChangeSet:
    """What a rule makes of a state that is stored as its first version."""
    changes = ChangeSet(state.request.created_ms)
    step = decide(state, state.request.created_ms)
    changes.add_records(step)
    changes.add(Stored(state, 0), step.state)
    return changes


async def test_a_full_disk_is_an_outage_every_time(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    await upgrade(url)
    async with open_engine(url) as database:
        ledger = SqlLedger(database, clock=SystemClock())
        async with ledger.running():
            state = await accepted(ledger, claimed(offer_of()))
        writer = SqliteWriter(database, connect_to_full_disk)

        for _ in range(2):
            with pytest.raises(UnavailableError):
                await writer.update(changes_of(state, collect("x" * 200_000)))

        written = await writer.update(changes_of(state, with_attempt(timeout_ms=5)))
        await writer.close()
    assert written.request_ids == {state.request.request_id}


class JumpingClock(SystemClock):
    """Is further on by `ahead_s`."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@pytest.mark.parametrize("ahead_s", [0, 1.5 * STALE_S])
async def test_versions_given_again_after_a_failover_are_not_taken_for_the_old_ones(
    shared_postgres: str, ahead_s: float
):
    """With an old answer about the time, the lost connection is noticed when asking for it."""
    clock = JumpingClock()
    async with (
        asyncio.timeout(LIMIT_S),
        replica(shared_postgres, clock) as ours,
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
        clock.ahead_s = ahead_s
        other = await theirs.update(request_id, collect("theirs"))

        change = await ours.update(request_id, with_attempt(timeout_ms=2))

    assert other is not None
    assert change is not None
    assert change.before == other.after
    assert change.after.attempts[0].status is AttemptStatus.SUCCEEDED


class Breaking(PostgresWriter):
    """Commits, and loses the connection before the answer comes."""

    async def update(self, changes: ChangeSet) -> Written:
        await super().update(changes)
        raise LostError("the connection broke")


async def test_a_change_whose_answer_got_lost_is_told_as_made(shared_postgres: str):
    """Else nobody would send the attempts it made, and its own result would be its duplicate."""
    recent = RecentStates(10)
    async with asyncio.timeout(LIMIT_S), open_engine(shared_postgres) as database:
        ledger = SqlLedger(database, clock=SystemClock())
        async with ledger.running():
            state = await accepted(ledger, claimed(offer_of()))
        recent.keep(Stored(state, 0))
        writer = Breaking(database.alone, recent.clear)
        time, read = DatabaseTime(SystemClock()), partial(read_stored, database)
        updates = DirectUpdates(writer=writer, recent=recent, time=time, read=read)

        (change,) = await updates.apply([Ruling(state.request.request_id, collect("done"))])

        (stored,) = (await read([state.request.request_id])).values()
        await writer.close()
    assert change is not None
    assert change.before == state
    assert len(change.new_attempts()) == 1
    assert change.after == stored.state


class Losing(Database):
    """Loses the connection once everything is written: with the commit, or before it."""

    commits = True

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        async with super().writing() as connection:
            yield connection
            if not self.commits:
                raise UnavailableError("the connection broke")
        raise UnavailableError("the connection broke")


class LosingBefore(Losing):
    commits = False


async def test_a_locked_change_whose_answer_got_lost_is_told_as_made(database: Database, ledger: SqlLedger):
    """With what it made due, which else waits for its claim to end and is taken for maybe sent."""
    states = [await accepted(ledger, claimed(offer_of())) for _ in range(2)]
    rulings = [Ruling(state.request.request_id, collect("done")) for state in states]
    recent = RecentStates(10)

    changes = await update_group(_like(database, Losing), recent, rulings)

    made = [change for change in changes if change is not None]
    assert [change.before for change in made] == states
    assert [len(change.new_attempts()) for change in made] == [1, 1]
    assert [change.after for change in made] == [await ledger.read(one.request_id) for one in rulings]
    assert all(recent.knows(one.request_id) for one in rulings)


async def test_a_locked_change_that_was_lost_before_its_commit_was_not_made(
    database: Database, ledger: SqlLedger
):
    state = await accepted(ledger, claimed(offer_of()))
    rulings = [Ruling(state.request.request_id, collect("done"))]

    with pytest.raises(UnavailableError):
        await update_group(_like(database, LosingBefore), RecentStates(10), rulings)

    assert await ledger.read(state.request.request_id) == state


async def test_a_locked_change_of_nothing_whose_answer_got_lost_says_nothing(
    database: Database, ledger: SqlLedger
):
    state = await accepted(ledger, claimed(offer_of()))
    nothing = Ruling(state.request.request_id, lambda state, _now: Step(state=state))

    with pytest.raises(UnavailableError):
        await update_group(_like(database, Losing), RecentStates(10), [nothing])


def _like(database: Database, kind: type[Losing]) -> Losing:
    return kind(
        writes=database.writes, reads=database.reads, questions=database.questions, alone=database.alone
    )


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
