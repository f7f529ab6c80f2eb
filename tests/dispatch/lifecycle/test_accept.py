import pytest

from dispatcher.dispatch.lifecycle.accept import Arrival, Repetition, first_step
from dispatcher.dispatch.lifecycle.expire import move_on
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestStatus, TaskStatus
from dispatcher.dispatch.lifecycle.task_frame import due_of, task_frame
from dispatcher.identifiers import CallerId, Capability, caller_scope, callers_key
from dispatcher.records import replace
from dispatcher.routing.decision import Outcome
from tests.dispatch.builders import (
    NOW,
    ORDER,
    QUOTE,
    Agents,
    Loads,
    accepted,
    arrival,
    assigner,
    intent,
    link,
    newest,
    task_of,
)


def test_independent_intents_all_get_their_first_attempt_at_once() -> None:
    state = accepted(intent(0), intent(1, QUOTE))

    assert [t.status for t in state.tasks] == [TaskStatus.OPEN, TaskStatus.OPEN]
    assert [a.status for a in state.attempts] == [AttemptStatus.DUE, AttemptStatus.DUE]
    assert all(a.claimed_by == "r1" and a.claimed_until_ms == NOW + 10_000 for a in state.attempts)


def test_an_agent_of_a_near_capability_is_asked_for_its_own_and_no_other_is_after_it() -> None:
    """Two capabilities asked for would be two things done."""
    near = Agents("a", "b")
    near.capability = QUOTE
    by = assigner(near)

    state = accepted(intent(0), by=by)
    near.capability = ORDER
    again = move_on(state, NOW, newest(state), by).state

    assert (newest(again).number, newest(again).agent_id) == (2, "b")
    assert (task_of(state).capability, task_of(again).capability) == (QUOTE, QUOTE)


def test_work_for_a_full_agent_stays_unclaimed_in_the_ledger() -> None:
    state = accepted(by=assigner(loads=Loads(room=0)))

    assert newest(state).claimed_by is None
    assert newest(state).status is AttemptStatus.DUE


def test_an_out_of_scope_message_ends_at_once_as_fallback() -> None:
    state = accepted(by=assigner(Agents(outcome=Outcome.OUT_OF_SCOPE)))

    assert state.request.status is RequestStatus.FALLBACK
    assert state.attempts == ()
    assert "wish 0" in (state.request.answer or "")


def test_a_required_field_that_only_the_user_knows_is_asked_for() -> None:
    state = accepted(intent(0, missing=("order_number",)))

    assert task_of(state).status is TaskStatus.NEEDS_INPUT
    assert "order_number" in (state.request.answer or "")


def test_a_dependent_task_waits_and_costs_no_attempt() -> None:
    state = accepted(intent(0), intent(1, QUOTE, links=(link("amount", (0, "amount")),)))

    assert task_of(state, 1).status is TaskStatus.WAITING
    assert state.attempts_of(task_of(state, 1).task_id) == ()


def test_a_required_field_is_skipped_for_when_its_producer_cannot_run() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount"), required=True),))

    state = accepted(intent(0, missing=("order_number",)), quote)

    assert task_of(state, 1).status is TaskStatus.SKIPPED
    assert task_of(state, 1).reason == "amount"


def test_an_optional_field_goes_on_without_a_producer_that_cannot_run() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),), inputs={"code": "x"})

    state = accepted(intent(0, missing=("order_number",)), quote)

    assert task_of(state, 1).status is TaskStatus.OPEN
    assert task_of(state, 1).inputs == {"code": "x"}


def test_a_task_not_declared_idempotent_keeps_its_whole_time_for_one_attempt() -> None:
    state = accepted(by=assigner(Agents("a1", idempotent=False)))

    assert newest(state).timeout_ms == 30_000


def test_why_a_capability_won_is_kept_even_if_the_task_never_opened() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount"), required=True),))

    step = first_step(arrival(intent(0, missing=("order_number",)), quote), NOW, assigner())

    assert [(d.position, d.number) for d in step.decisions] == [(0, 1), (1, 1)]


def test_what_is_not_granted_does_not_even_ask() -> None:
    by = assigner(Agents(outcome=Outcome.OUT_OF_SCOPE))

    state = accepted(intent(0, missing=("order_number",)), by=by)

    assert task_of(state).status is TaskStatus.OUT_OF_SCOPE


def test_a_repeated_task_keeps_its_old_key_and_counts() -> None:
    repeated = Repetition(idempotency_key="old:0", number=2)

    state = first_step(replace(arrival(), repeats=repeated), NOW, assigner()).state

    frame = task_frame(due_of(state, state.attempts[0], NOW), "results")
    assert (frame.idempotency_key, frame.repeat) == ("old:0", 2)


def keyed(*, key: str | None, capability: Capability | None, repeats: Repetition | None = None) -> Arrival:
    made = arrival(intent(0))
    message = replace(made.message, idempotency_key=key, capability=capability)
    return replace(made, message=message, repeats=repeats)


def key_of(made: Arrival) -> str | None:
    return task_of(first_step(made, NOW, assigner()).state).idempotency_key


def test_a_task_whose_caller_chose_key_and_capability_has_a_key_that_its_caller_can_tell() -> None:
    made = keyed(key="k1", capability=QUOTE)

    assert key_of(made) == callers_key(made.caller, QUOTE, "k1", made.message.message)


@pytest.mark.parametrize(("key", "capability"), [(None, QUOTE), ("k1", None)])
def test_any_other_task_has_a_key_of_its_request(key, capability) -> None:
    assert key_of(keyed(key=key, capability=capability)) is None


def test_a_repeated_task_keeps_the_key_it_had() -> None:
    repeats = Repetition(idempotency_key="old", number=1)

    assert key_of(keyed(key="k1", capability=QUOTE, repeats=repeats)) == "old"


def test_keys_of_callers_never_meet() -> None:
    names = ("alice", "bob", 'alice", "')
    keys = {name: callers_key(CallerId(name), QUOTE, "k1", "hello") for name in names}

    for name, key in keys.items():
        assert [other for other in names if key.startswith(caller_scope(CallerId(other)))] == [name]
        assert len(key) <= 128
