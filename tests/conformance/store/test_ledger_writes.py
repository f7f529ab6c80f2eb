import asyncio
import math

import pytest
from sqlalchemy import select

from dispatcher.dispatch.lifecycle.ledger import Change, KeyedRequest, Offer, Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, ResultKind, TaskStatus
from dispatcher.errors import DispatcherError
from dispatcher.identifiers import CallerId, RequestId, new_id
from dispatcher.records import replace
from dispatcher.store.engine import Database
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.tables import results
from tests.conformance.store.ledger_requests import (
    CALLER,
    accepted,
    collect,
    decision_of,
    offer_of,
    with_attempt,
)

LIMIT_S = 20


async def test_what_is_accepted_is_read_back_equal(ledger: SqlLedger):
    state = await accepted(ledger)

    stored = await ledger.read(state.request.request_id)

    assert stored == state


async def test_accepting_stores_request_and_first_decision_in_one_change(ledger: SqlLedger):
    offer = offer_of()

    change = await ledger.accept(offer)

    assert isinstance(change, Change)
    assert change.before is None
    assert change.new_attempts() == change.after.attempts
    assert change.after.request.created_ms == change.now_ms
    assert await ledger.read_decisions(offer.request_id) == (decision_of(offer.request_id),)


async def test_an_unknown_request_reads_as_none(ledger: SqlLedger):
    unknown = RequestId(new_id())

    assert await ledger.read(unknown) is None
    assert await ledger.read_decisions(unknown) == ()
    assert await ledger.update(unknown, collect("late")) is None


async def test_a_key_used_again_gives_its_first_request(ledger: SqlLedger):
    first = await accepted(ledger, offer_of(key="k", digest="one"))

    again = await ledger.accept(offer_of(key="k", digest="two"))

    known = KeyedRequest(request_id=first.request.request_id, body_digest="one")
    assert again == known
    assert await ledger.find_by_key(CALLER, "k") == known


async def test_of_two_offers_with_one_key_in_one_group_the_first_wins(ledger: SqlLedger):
    offers = [offer_of(key="k", digest=str(number)) for number in range(5)]

    answers = await asyncio.gather(*(ledger.accept(offer) for offer in offers))

    assert isinstance(answers[0], Change)
    known = KeyedRequest(request_id=offers[0].request_id, body_digest="0")
    assert answers[1:] == [known] * 4


async def test_a_key_belongs_to_its_caller_alone(ledger: SqlLedger):
    await accepted(ledger, offer_of(key="k"))

    other = await ledger.accept(offer_of(key="k", caller=CallerId("other")))

    assert isinstance(other, Change)
    assert await ledger.find_by_key(CallerId("third"), "k") is None


async def test_offering_one_request_again_after_an_unknown_outcome_stores_it_once(ledger: SqlLedger):
    offer = offer_of()
    await ledger.accept(offer)

    again = await ledger.accept(offer)

    assert again == KeyedRequest(request_id=offer.request_id, body_digest="digest")


async def test_an_offer_that_cannot_be_built_fails_alone(ledger: SqlLedger):
    def build(_now: int) -> Step:
        raise ValueError("no plan")

    offers = [offer_of(), replace(offer_of(), build=build), offer_of()]

    answers = await asyncio.gather(*map(ledger.accept, offers), return_exceptions=True)

    assert [type(answer) for answer in answers] == [Change, ValueError, Change]


async def test_a_row_that_the_database_refuses_fails_alone(ledger: SqlLedger):
    def build(now: int) -> Step:
        step = offers[1].build(now)
        return replace(step, decisions=(*step.decisions, *step.decisions))

    offers = [offer_of(), offer_of(), offer_of()]
    bad = replace(offers[1], build=build)

    answers = await asyncio.gather(*map(ledger.accept, (offers[0], bad, offers[2])), return_exceptions=True)

    assert [isinstance(answer, Change) for answer in answers] == [True, False, True]
    assert await ledger.read(bad.request_id) is None


async def test_text_with_nul_is_stored_alike_on_both_databases(ledger: SqlLedger):
    state = await accepted(ledger)

    await ledger.update(state.request.request_id, collect("a\0b"))

    stored = await ledger.read(state.request.request_id)
    assert stored is not None
    assert stored.tasks[0].result_text == "a\ufffdb"


async def test_numbers_beyond_64_bits_in_a_context_are_accepted(ledger: SqlLedger):
    offer = offer_of()

    def build(now: int) -> Step:
        step = offer.build(now)
        request = replace(step.state.request, context={"number": 2**70})
        return replace(step, state=replace(step.state, request=request))

    state = await accepted(ledger, replace(offer, build=build))

    stored = await ledger.read(state.request.request_id)
    assert stored is not None
    assert stored.request.context == {"number": pytest.approx(2**70)}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
async def test_an_offer_with_a_number_that_is_not_finite_is_refused_alone(ledger: SqlLedger, number: float):
    offers = [offer_of() for _ in range(6)]

    def with_task(offer: Offer, **changed: object) -> Offer:
        def build(now: int) -> Step:
            step = offer.build(now)
            first, *others = step.state.tasks
            return replace(step, state=replace(step.state, tasks=(replace(first, **changed), *others)))  # type: ignore[arg-type] # a task's own fields

        return replace(offer, build=build)

    bad = [
        with_task(offers[1], score=number),
        with_task(offers[2], similarity=number),
        with_task(offers[3], inputs={"amount": number}),
        with_task(offers[4], result_data={"rows": [1, None, {"amount": number}]}),
    ]

    answers = await asyncio.gather(*map(ledger.accept, (offers[0], *bad, offers[5])), return_exceptions=True)

    assert [type(answer) for answer in answers] == [Change, *[DispatcherError] * 4, Change]
    assert [await ledger.read(offer.request_id) for offer in bad] == [None] * 4


async def test_a_result_with_a_number_that_is_not_finite_changes_nothing(ledger: SqlLedger):
    state = await accepted(ledger)

    def decide(before: RequestState, _now: int) -> Step:
        first, second = before.tasks
        return Step(state=replace(before, tasks=(replace(first, score=math.nan), second)))

    with pytest.raises(DispatcherError, match="not finite"):
        await ledger.update(state.request.request_id, decide)

    assert await ledger.read(state.request.request_id) == state


async def test_of_two_results_for_one_task_in_one_group_the_first_wins(ledger: SqlLedger, database: Database):
    state = await accepted(ledger)
    request_id = state.request.request_id

    await asyncio.gather(*(ledger.update(request_id, collect(text)) for text in ("one", "two", "three")))

    stored = await ledger.read(request_id)
    assert stored is not None
    assert stored.tasks[0].result_text == "one"
    async with database.reading() as connection:
        kinds = (
            (await connection.execute(select(results.c.kind).order_by(results.c.result_id))).scalars().all()
        )
    assert kinds == [ResultKind.ACCEPTED, ResultKind.DUPLICATE, ResultKind.DUPLICATE]


async def test_each_rule_sees_the_state_the_one_before_left(ledger: SqlLedger):
    state = await accepted(ledger)
    request_id = state.request.request_id

    first, second = await asyncio.gather(
        ledger.update(request_id, collect("one")), ledger.update(request_id, collect("two"))
    )

    assert first is not None
    assert second is not None
    assert first.before == state
    assert second.before == first.after == second.after
    assert await ledger.read(request_id) == second.after


async def test_a_result_and_the_attempt_it_frees_are_stored_together(ledger: SqlLedger):
    state = await accepted(ledger)

    change = await ledger.update(state.request.request_id, collect("one"))

    assert change is not None
    assert [attempt.task_id for attempt in change.new_attempts()] == [state.tasks[1].task_id]
    assert await ledger.read(state.request.request_id) == change.after
    assert len(await ledger.read_decisions(state.request.request_id)) == 2


async def test_a_result_is_not_stored_when_what_it_frees_cannot_be(ledger: SqlLedger):
    state = await accepted(ledger)

    def broken(before: RequestState, now: int) -> Step:
        step = collect("one")(before, now)
        return replace(step, decisions=(decision_of(before.request.request_id),))

    with pytest.raises(Exception, match="refused"):
        await ledger.update(state.request.request_id, broken)

    assert await ledger.read(state.request.request_id) == state


async def test_a_failing_rule_leaves_the_others_of_its_group_alone(ledger: SqlLedger):
    states = [await accepted(ledger) for _ in range(3)]

    def broken(_before: RequestState, _now: int) -> Step:
        raise ValueError("broken")

    rules = [collect("one"), broken, collect("three")]
    answers = await asyncio.gather(
        *(ledger.update(s.request.request_id, rule) for s, rule in zip(states, rules, strict=True)),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [Change, ValueError, Change]
    assert await ledger.read(states[1].request.request_id) == states[1]


async def test_an_equal_state_writes_nothing(ledger: SqlLedger):
    state = await accepted(ledger)

    change = await ledger.update(state.request.request_id, lambda before, _now: Step(state=before))

    assert change is not None
    assert change.before == change.after == state


async def test_published_attempts_lapse_after_their_timeout_but_not_after_the_deadline(ledger: SqlLedger):
    state = await accepted(ledger)
    await ledger.mark_published(state.attempts[0])
    free = await ledger.read(state.request.request_id)
    bounded = await accepted(ledger)
    deadline = bounded.request.created_ms + 50
    await ledger.update(
        bounded.request.request_id,
        lambda s, _now: Step(
            state=replace(s, tasks=(replace(s.tasks[0], deadline_ms=deadline), *s.tasks[1:]))
        ),
    )
    await ledger.mark_published(bounded.attempts[0])
    capped = await ledger.read(bounded.request.request_id)

    assert free is not None
    assert free.attempts[0].status is AttemptStatus.PUBLISHED
    assert free.attempts[0].lapse_ms == (free.attempts[0].published_ms or 0) + state.attempts[0].timeout_ms
    assert capped is not None
    assert capped.attempts[0].lapse_ms == deadline


async def test_an_attempt_that_has_ended_is_not_marked_as_published(ledger: SqlLedger):
    state = await accepted(ledger)
    await ledger.update(state.request.request_id, with_attempt(status=AttemptStatus.SUCCEEDED))

    await ledger.mark_published(state.attempts[0])

    stored = await ledger.read(state.request.request_id)
    assert stored is not None
    assert stored.attempts[0].status is AttemptStatus.SUCCEEDED


async def test_a_result_that_overtakes_the_publication_mark_stands(ledger: SqlLedger):
    state = await accepted(ledger)

    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(
            ledger.update(state.request.request_id, collect("quick")),
            ledger.mark_published(state.attempts[0]),
        )

    stored = await ledger.read(state.request.request_id)
    assert stored is not None
    assert stored.tasks[0].status is TaskStatus.COMPLETED
    assert stored.attempts[0].status is AttemptStatus.SUCCEEDED
