"""Changes made from what a replica stored last: as if they had been made under a lock."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import event, select

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.ledger import Change, Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, ResultKind, TaskStatus
from dispatcher.identifiers import ReplicaId
from dispatcher.records import replace
from dispatcher.store.direct import CLAIM_MARGIN_MS
from dispatcher.store.engine import Database
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.tables import results
from tests.conformance.store.ledger_requests import (
    AGENT,
    accepted,
    claimed,
    collect,
    decision_of,
    finish,
    offer_of,
    replica,
    with_attempt,
)

LIMIT_S = 20


@pytest.fixture
async def other(database: Database) -> AsyncIterator[SqlLedger]:
    """A second replica's ledger on the same database."""
    ledger = SqlLedger(database, clock=SystemClock())
    async with ledger.running():
        yield ledger


async def kinds(database: Database, state: RequestState) -> list[str]:
    query = select(results.c.kind).where(results.c.request_id == state.request.request_id)
    async with database.reading() as connection:
        return sorted((await connection.execute(query)).scalars())


async def test_a_result_is_taken_without_reading_its_request(database: Database, ledger: SqlLedger):
    statements: list[str] = []
    engine = database.writes.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(str(args[2])))
    state = await accepted(ledger, claimed(offer_of()))

    change = await ledger.update(state.request.request_id, collect("done"))

    assert change is not None
    assert change.before == state
    assert statements == []


async def test_what_was_changed_from_memory_reads_back_equal(ledger: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))

    change = await ledger.update(state.request.request_id, collect("done"))

    assert change is not None
    assert await ledger.read(state.request.request_id) == change.after
    assert len(await ledger.read_decisions(state.request.request_id)) == 2


async def test_what_another_replica_changed_meanwhile_is_seen(
    database: Database, ledger: SqlLedger, other: SqlLedger
):
    state = await accepted(ledger, claimed(offer_of()))
    theirs = await other.update(state.request.request_id, collect("theirs"))

    ours = await ledger.update(state.request.request_id, collect("ours"))

    assert theirs is not None
    assert ours is not None
    assert ours.before == theirs.after
    assert await kinds(database, state) == [ResultKind.ACCEPTED, ResultKind.DUPLICATE]


async def test_of_two_replicas_that_take_a_result_at_once_one_wins(
    database: Database, ledger: SqlLedger, other: SqlLedger
):
    async with asyncio.timeout(LIMIT_S):
        states = await asyncio.gather(*(accepted(ledger, claimed(offer_of())) for _ in range(30)))
        ids = [state.request.request_id for state in states]
        await asyncio.gather(
            *(ledger.update(one, collect("ours")) for one in ids),
            *(other.update(one, collect("theirs")) for one in reversed(ids)),
        )

    found = Counter([kind for state in states for kind in await kinds(database, state)])
    assert found == {ResultKind.ACCEPTED: 30, ResultKind.DUPLICATE: 30}


async def test_a_request_that_ended_elsewhere_stays_ended(ledger: SqlLedger, other: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))
    await other.update(state.request.request_id, finish())

    change = await ledger.update(state.request.request_id, lambda found, _now: Step(state=found))

    assert change is not None
    assert change.before == change.after == await ledger.read(state.request.request_id)


async def test_a_claim_that_another_replica_took_over_is_seen(ledger: SqlLedger, other: SqlLedger):
    state = await accepted(ledger, claimed(offer_of(), for_ms=-1))
    (due,) = await other.claim_due(ReplicaId("other"), {AGENT: 1}, 60)

    change = await ledger.update(state.request.request_id, with_attempt(timeout_ms=5))

    assert change is not None
    assert change.before is not None
    assert change.before.attempts[0].claimed_by == "other"
    assert change.before.attempts[0].published_ms is not None
    assert due.attempt.task_id == state.tasks[0].task_id


async def test_shortly_before_a_claim_ends_its_request_is_read(database: Database, ledger: SqlLedger):
    statements: list[str] = []
    engine = database.writes.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(str(args[2])))
    state = await accepted(ledger, claimed(offer_of(), for_ms=CLAIM_MARGIN_MS))

    change = await ledger.update(state.request.request_id, collect("done"))

    assert change is not None
    assert change.before == state
    assert any("requests" in statement for statement in statements)


async def test_a_change_from_memory_that_the_database_refuses_fails_alone(ledger: SqlLedger):
    states = await asyncio.gather(*(accepted(ledger, claimed(offer_of())) for _ in range(3)))
    bad = states[1].request.request_id

    def twice(state: RequestState, now: int) -> Step:
        step = collect("bad")(state, now)
        return replace(step, decisions=(decision_of(bad), decision_of(bad)))

    rules = [collect("good"), twice, collect("good")]
    answers = await asyncio.gather(
        *(ledger.update(state.request.request_id, rule) for state, rule in zip(states, rules, strict=True)),
        return_exceptions=True,
    )

    assert [isinstance(answer, Change) for answer in answers] == [True, False, True]
    assert await ledger.read(bad) == states[1]


async def test_rules_of_one_request_in_one_group_follow_one_another(database: Database, ledger: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))

    answers = await asyncio.gather(
        *(ledger.update(state.request.request_id, collect(str(number))) for number in range(5))
    )

    assert [change.before == state for change in answers if change] == [True, False, False, False, False]
    assert await kinds(database, state) == [ResultKind.ACCEPTED] + 4 * [ResultKind.DUPLICATE]


async def test_a_publish_and_the_result_that_comes_at_once_are_one_change(ledger: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))

    async with asyncio.timeout(LIMIT_S):
        _, change = await asyncio.gather(
            ledger.mark_published(state.attempts[0]), ledger.update(state.request.request_id, collect("done"))
        )

    assert change is not None
    assert change.before == state
    first = change.after.attempts[0]
    assert first.status is AttemptStatus.SUCCEEDED
    assert first.published_ms == change.now_ms
    assert await ledger.read(state.request.request_id) == change.after


async def test_a_publish_is_noted_although_the_change_it_went_with_fails(ledger: SqlLedger):
    state = await accepted(ledger, claimed(offer_of()))

    def breaks(_state: RequestState, _now: int) -> Step:
        raise ValueError("no rule")

    async with asyncio.timeout(LIMIT_S):
        _, failure = await asyncio.gather(
            ledger.mark_published(state.attempts[0]),
            ledger.update(state.request.request_id, breaks),
            return_exceptions=True,
        )

    stored = await ledger.read(state.request.request_id)
    assert isinstance(failure, ValueError)
    assert stored is not None
    assert stored.attempts[0].status is AttemptStatus.PUBLISHED


async def test_changes_outlive_the_loss_of_their_connections(shared_postgres: str):
    end_others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as ledger:
        states = [await accepted(ledger, claimed(offer_of())) for _ in range(2)]
        await ledger.update(states[0].request.request_id, collect("before"))
        server = await asyncpg.connect(shared_postgres)
        await server.fetch(end_others)
        await server.close()

        change = await ledger.update(states[1].request.request_id, collect("after"))
        stored = await ledger.read(states[1].request.request_id)

    assert change is not None
    assert change.after == stored
    assert change.after.tasks[0].status is TaskStatus.COMPLETED
