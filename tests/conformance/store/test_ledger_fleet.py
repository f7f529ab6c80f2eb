"""Beside replicas of an earlier release, which change requests and count no versions."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import select, text

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import RequestState, ResultKind, TaskStatus
from dispatcher.store.engine import Database, open_engine
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.tables import requests, results
from tests.conformance.store.ledger_requests import accepted, claimed, collect, offer_of, with_attempt

ANOTHER_TASK = (
    "INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object("
    "'task_id', t.task_id || '9', 'position', t.position + 9))).* FROM tasks t"
)


@pytest.fixture
async def other(database: Database) -> AsyncIterator[SqlLedger]:
    """A second replica's ledger on the same database."""
    ledger = SqlLedger(database, clock=SystemClock())
    async with ledger.running():
        yield ledger


async def uncount(database: Database, state: RequestState) -> None:
    """Make the last change one that nobody counted."""
    async with database.writing() as connection:
        await connection.execute(
            text("UPDATE requests SET version = version - 1 WHERE request_id = :one"),
            {"one": state.request.request_id},
        )


async def kinds(database: Database, state: RequestState) -> list[str]:
    query = select(results.c.kind).where(results.c.request_id == state.request.request_id)
    async with database.reading() as connection:
        return sorted((await connection.execute(query)).scalars())


async def version(database: Database, state: RequestState) -> int:
    query = select(requests.c.version).where(requests.c.request_id == state.request.request_id)
    async with database.reading() as connection:
        return int((await connection.execute(query)).scalar_one())


async def test_what_the_database_refuses_to_memory_is_done_under_the_lock(
    database: Database, ledger: SqlLedger, other: SqlLedger
):
    state = await accepted(ledger, claimed(offer_of()))
    theirs = await other.update(state.request.request_id, collect("done"))
    await uncount(database, state)

    ours = await ledger.update(state.request.request_id, collect("done"))

    assert theirs is not None
    assert ours is not None
    assert ours.before == theirs.after
    assert await kinds(database, state) == [ResultKind.ACCEPTED, ResultKind.DUPLICATE]


@pytest.mark.postgres
async def test_a_change_of_an_earlier_replica_is_counted_for_it(shared_postgres: str):
    async with open_engine(shared_postgres) as database:
        ledger = SqlLedger(database, clock=SystemClock())
        async with ledger.running():
            state = await accepted(ledger, claimed(offer_of()))
            earlier = await asyncpg.connect(shared_postgres)
            await earlier.execute(
                "UPDATE tasks SET status = 'completed', result_text = 'theirs' WHERE task_id = $1",
                state.tasks[0].task_id,
            )
            await earlier.close()

            ours = await ledger.update(state.request.request_id, collect("ours"))

            assert ours is not None
            assert ours.before is not None
            assert ours.before.tasks[0].result_text == "theirs"
            assert await kinds(database, state) == [ResultKind.DUPLICATE]


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ("UPDATE attempts SET status = 'published'", 1),
        ("UPDATE requests SET status = 'cancelled'", 1),
        ("UPDATE attempts SET claimed_by = 'earlier', claimed_until_ms = 1", 0),
        (ANOTHER_TASK, 2),
    ],
)
async def test_an_earlier_replicas_statements_count_by_what_they_change(
    shared_postgres: str, change: str, counted: int
):
    async with open_engine(shared_postgres) as database:
        ledger = SqlLedger(database, clock=SystemClock())
        async with ledger.running():
            state = await accepted(ledger, claimed(offer_of()))
        earlier = await asyncpg.connect(shared_postgres)
        await earlier.execute(change)
        await earlier.close()

        assert await version(database, state) == counted


async def test_our_own_changes_are_counted_once(database: Database, ledger: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))
    before = await version(database, state)
    await ledger.update(state.request.request_id, collect("from memory"))
    from_memory = await version(database, state)
    await ledger.update(state.request.request_id, lambda found, _now: Step(state=found))
    unclaimed = await accepted(ledger)
    await ledger.update(unclaimed.request.request_id, collect("under the lock"))

    assert (before, from_memory) == (0, 1)
    assert await version(database, unclaimed) == 1


async def test_without_memory_every_change_reads_its_request(database: Database):
    ledger = SqlLedger(database, clock=SystemClock(), recent_states=0)
    async with ledger.running():
        state = await accepted(ledger, claimed(offer_of()))
        async with database.writing() as connection:
            await connection.execute(text("UPDATE attempts SET timeout_ms = 77"))

        change = await ledger.update(state.request.request_id, with_attempt(lease_ms=5))

    assert change is not None
    assert change.before is not None
    assert change.before.attempts[0].timeout_ms == 77
    assert change.after.tasks[0].status is TaskStatus.OPEN
