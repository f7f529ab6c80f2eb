import pytest

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState
from dispatcher.identifiers import AgentId, ReplicaId
from dispatcher.records import replace
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import (
    AGENT,
    HOUR_MS,
    accepted,
    collect,
    finish,
    offer_of,
    with_attempt,
)

FIRST, SECOND = ReplicaId("replica-1"), ReplicaId("replica-2")
OTHER = AgentId("other-agent")


def fail_first_task(state: RequestState, _now: int) -> Step:
    """Ends the first attempt as failed an hour ago."""
    ended = replace(
        state.attempts[0], status=AttemptStatus.FAILED, finished_ms=state.request.created_ms - HOUR_MS
    )
    return Step(state=replace(state, attempts=(ended,)))


async def test_a_claimed_attempt_comes_with_all_that_its_frame_needs(ledger: SqlLedger):
    state = await accepted(ledger)

    (due,) = await ledger.claim_due(FIRST, {AGENT: 10}, 30)

    assert (due.request, due.task, due.text) == (state.request, state.tasks[0], state.intents[0].text)
    assert (due.attempt.token, due.attempt.claimed_by) == (state.attempts[0].token, FIRST)
    assert due.entities == ({"kind": "amount", "text": "99元", "value": 99.0, "start": 0, "end": 3},)
    assert due.attempt.claimed_until_ms == pytest.approx(due.now_ms + 30_000, abs=1000)


async def test_at_most_the_room_of_each_agent_is_claimed_oldest_first(ledger: SqlLedger):
    states = [await accepted(ledger) for _ in range(3)]
    other = await accepted(ledger, offer_of(agent=OTHER))

    due = await ledger.claim_due(FIRST, {AGENT: 2, OTHER: 5, AgentId("idle"): 5}, 30)

    expected = [states[0], states[1], other]
    assert [d.request.request_id for d in due] == [s.request.request_id for s in expected]


async def test_agents_without_room_get_nothing(ledger: SqlLedger):
    await accepted(ledger)

    assert await ledger.claim_due(FIRST, {}, 30) == ()
    assert await ledger.claim_due(FIRST, {AGENT: 0, OTHER: 3}, 30) == ()


async def test_a_claim_keeps_others_away_until_it_ends_by_itself(ledger: SqlLedger):
    await accepted(ledger)

    held = await ledger.claim_due(FIRST, {AGENT: 1}, 30)
    refused = await ledger.claim_due(SECOND, {AGENT: 1}, 30)

    assert (len(held), refused) == (1, ())
    assert await ledger.due_agents() == frozenset()


async def test_an_ended_claim_can_be_taken_by_another_replica(ledger: SqlLedger):
    await accepted(ledger)
    await ledger.claim_due(FIRST, {AGENT: 1}, 0)

    (due,) = await ledger.claim_due(SECOND, {AGENT: 1}, 30)

    assert due.attempt.claimed_by == SECOND


async def test_an_attempt_that_was_claimed_before_may_have_been_sent(ledger: SqlLedger):
    await accepted(ledger)

    (fresh,) = await ledger.claim_due(FIRST, {AGENT: 1}, 0)
    (again,) = await ledger.claim_due(SECOND, {AGENT: 1}, 0)
    (once_more,) = await ledger.claim_due(SECOND, {AGENT: 1}, 0)

    assert fresh.attempt.published_ms is None
    assert again.attempt.published_ms == pytest.approx(again.now_ms, abs=1000)
    assert once_more.attempt.published_ms == again.attempt.published_ms


async def test_published_attempts_without_a_result_are_found_by_agent_and_age(ledger: SqlLedger):
    state = await accepted(ledger)
    await accepted(ledger, offer_of(agent=OTHER))
    await ledger.mark_published(state.attempts[0])

    found = await ledger.unanswered([AGENT, OTHER], 0, 10)

    assert [(a.task_id, a.number) for a in found] == [(state.tasks[0].task_id, 1)]
    assert await ledger.unanswered([OTHER], 0, 10) == ()
    assert await ledger.unanswered([AGENT], 60, 10) == ()


async def test_an_attempt_is_not_due_before_its_time_or_after_its_publication(ledger: SqlLedger):
    later = await accepted(ledger)
    await ledger.update(
        later.request.request_id, with_attempt(not_before_ms=later.request.created_ms + HOUR_MS)
    )
    published = await accepted(ledger)
    await ledger.mark_published(published.attempts[0])

    assert await ledger.due_agents() == frozenset()
    assert await ledger.claim_due(FIRST, {AGENT: 10}, 30) == ()


async def test_agents_with_claimable_attempts_are_named(ledger: SqlLedger):
    await accepted(ledger)
    await accepted(ledger)
    await accepted(ledger, offer_of(agent=OTHER))

    assert await ledger.due_agents() == {AGENT, OTHER}


async def test_open_attempts_count_due_and_published_ones_per_agent(ledger: SqlLedger):
    published = await accepted(ledger)
    await ledger.mark_published(published.attempts[0])
    await accepted(ledger)
    await accepted(ledger, offer_of(agent=OTHER))
    ended = await accepted(ledger, offer_of(agent=OTHER))
    await ledger.update(ended.request.request_id, with_attempt(status=AttemptStatus.FAILED))

    assert dict(await ledger.open_attempts()) == {AGENT: 2, OTHER: 1}


async def test_published_attempts_count_those_on_their_way_too(ledger: SqlLedger):
    published = await accepted(ledger)
    await ledger.mark_published(published.attempts[0])
    await accepted(ledger, offer_of(agent=OTHER))
    await ledger.claim_due(FIRST, {OTHER: 1}, 30)
    await accepted(ledger, offer_of(agent=OTHER))
    await accepted(ledger)
    await ledger.claim_due(FIRST, {AGENT: 1}, 0)

    assert dict(await ledger.published_attempts()) == {AGENT: 1, OTHER: 1}


async def test_requests_are_overdue_by_their_own_their_tasks_or_their_attempts_time(ledger: SqlLedger):
    request, task, attempt, _in_time, ended = [await accepted(ledger) for _ in range(5)]
    past = request.request.created_ms - HOUR_MS

    async def change(state: RequestState, changed: RequestState) -> None:
        await ledger.update(state.request.request_id, lambda _before, _now: Step(state=changed))

    await change(request, replace(request, request=replace(request.request, deadline_ms=past)))
    await change(task, replace(task, tasks=(replace(task.tasks[0], deadline_ms=past - 2), task.tasks[1])))
    lapsed = replace(attempt.attempts[0], status=AttemptStatus.PUBLISHED, lapse_ms=past - 1)
    await change(attempt, replace(attempt, attempts=(lapsed,)))
    await change(ended, replace(ended, request=replace(ended.request, deadline_ms=past)))
    await ledger.update(ended.request.request_id, finish())

    expected = [state.request.request_id for state in (task, attempt, request)]
    assert list(await ledger.overdue(10)) == expected
    assert list(await ledger.overdue(2)) == expected[:2]


async def test_outcomes_of_the_last_day_weigh_less_with_age(ledger: SqlLedger):
    succeeded = await accepted(ledger)
    await ledger.update(succeeded.request.request_id, collect("ok"))
    failed = await accepted(ledger)
    await ledger.update(failed.request.request_id, fail_first_task)
    busy = await accepted(ledger)
    await ledger.update(
        busy.request.request_id,
        with_attempt(status=AttemptStatus.NOT_STARTED, finished_ms=busy.request.created_ms),
    )
    old = await accepted(ledger)
    await ledger.update(
        old.request.request_id,
        with_attempt(status=AttemptStatus.FAILED, finished_ms=old.request.created_ms - 25 * HOUR_MS),
    )

    (count,) = await ledger.outcome_counts(half_life_s=3600)

    assert (count.agent_id, count.capability) == (AGENT, "order.query")
    assert count.succeeded == pytest.approx(1.0, abs=0.01)
    assert count.failed == pytest.approx(0.5, abs=0.01)


async def sent(ledger: SqlLedger, pace: float) -> int:
    """How many attempts one look takes for an agent of this pace."""
    due = await ledger.claim_due(FIRST, {AGENT: 100}, 30, paces={AGENT: pace})
    return len(due)


async def test_an_agent_with_a_pace_gets_no_more_in_a_second_than_it_takes(ledger: SqlLedger):
    for _ in range(4):
        await accepted(ledger)

    assert [await sent(ledger, 2.5) for _ in range(2)] == [2, 0]


async def test_what_was_published_or_has_ended_in_the_last_second_counts_for_the_pace(ledger: SqlLedger):
    states = [await accepted(ledger) for _ in range(4)]
    now = states[0].request.created_ms
    recent = with_attempt(status=AttemptStatus.SUCCEEDED, published_ms=now + 9_000, finished_ms=now + 9_000)
    old = with_attempt(status=AttemptStatus.SUCCEEDED, published_ms=now - 9_000, finished_ms=now + 9_000)
    await ledger.update(states[0].request.request_id, recent)
    await ledger.update(states[1].request.request_id, old)

    assert await sent(ledger, 2) == 1


async def test_a_pace_below_one_is_a_task_in_that_many_seconds(ledger: SqlLedger):
    state = await accepted(ledger)
    await accepted(ledger)
    now = state.request.created_ms
    await ledger.update(
        state.request.request_id,
        with_attempt(status=AttemptStatus.PUBLISHED, published_ms=now - 1_500, lapse_ms=now + HOUR_MS),
    )

    assert await sent(ledger, 0.5) == 0
    assert await sent(ledger, 0.9) == 1
