import pytest

from dispatcher.dispatch.lifecycle.assign import AttemptRules
from dispatcher.dispatch.lifecycle.expire import expire
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestStatus, ResultKind, TaskStatus
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.protocol.frames import ResultBody, ResultStatus
from dispatcher.routing.decision import Outcome
from tests.dispatch.builders import (
    NOW,
    QUOTE,
    Agents,
    Spent,
    accepted,
    assigner,
    intent,
    link,
    newest,
    published,
    result,
    task_of,
)

LATER = NOW + 500


def test_a_success_completes_task_and_request_with_the_agents_text() -> None:
    state = published(accepted())

    step = settle(state, LATER, result(newest(state)), assigner())

    assert task_of(step.state).status is TaskStatus.COMPLETED
    assert step.state.request.status is RequestStatus.COMPLETED
    assert step.state.request.answer == "done"
    assert newest(step.state).status is AttemptStatus.SUCCEEDED
    assert [r.kind for r in step.results] == [ResultKind.ACCEPTED]


def test_a_result_before_the_publish_was_recorded_counts() -> None:
    state = accepted()

    step = settle(state, LATER, result(newest(state)), assigner())

    assert step.state.request.status is RequestStatus.COMPLETED


@pytest.mark.parametrize(("field", "value"), [("token", "x" * 20), ("attempt", 2)])
def test_a_result_without_its_attempts_token_is_kept_and_changes_nothing(field: str, value: object) -> None:
    state = published(accepted())
    wrong = result(newest(state)).model_copy(update={field: value})

    step = settle(state, LATER, wrong, assigner())

    assert step.state == state
    assert [r.kind for r in step.results] == [ResultKind.REJECTED]


def test_a_result_for_an_unknown_task_is_not_recorded() -> None:
    state = published(accepted())

    step = settle(state, LATER, result(newest(state), task_id="other"), assigner())

    assert step.state == state
    assert step.results == ()


@pytest.mark.parametrize(("text", "kind"), [("done", ResultKind.DUPLICATE), ("else", ResultKind.CONFLICT)])
def test_after_the_first_result_others_change_nothing(text: str, kind: ResultKind) -> None:
    state = published(accepted())
    ended = settle(state, LATER, result(newest(state)), assigner()).state
    again = result(newest(state), result=ResultBody(text=text, data={"amount": 12.5}))

    step = settle(ended, LATER + 1, again, assigner())

    assert step.state == ended
    assert [r.kind for r in step.results] == [kind]


def test_the_record_of_a_result_holds_no_token() -> None:
    state = published(accepted())

    step = settle(state, LATER, result(newest(state)), assigner())

    assert newest(state).token not in step.results[0].document


def test_busy_moves_the_task_to_another_agent() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = published(accepted(by=by))

    step = settle(state, LATER, result(newest(state), ResultStatus.BUSY), by)

    assert newest(step.state).agent_id == "a2"
    assert newest(step.state).number == 2
    assert step.state.attempts[0].status is AttemptStatus.NOT_STARTED
    assert [d.number for d in step.decisions] == [2]


def test_busy_at_the_only_agent_tries_it_again_after_a_delay() -> None:
    by = assigner(Agents("a1"))
    state = published(accepted(by=by))

    step = settle(state, LATER, result(newest(state), ResultStatus.BUSY), by)

    delay = newest(step.state).not_before_ms - LATER
    assert newest(step.state).agent_id == "a1"
    assert 100 <= delay <= 800
    assert newest(step.state).claimed_by is None


def test_three_busy_answers_make_the_part_unavailable() -> None:
    by = assigner(Agents("a1", "a2", "a3"))
    state = accepted(by=by)
    for _ in range(3):
        state = published(state)
        state = settle(state, LATER, result(newest(state), ResultStatus.BUSY), by).state

    assert len(state.attempts) == 3
    assert task_of(state).status is TaskStatus.UNAVAILABLE
    assert task_of(state).error_code == "busy"
    assert state.request.status is RequestStatus.FAILED


def test_an_expired_attempt_without_another_fails() -> None:
    by = assigner(Agents("a1", "a2", "a3"))
    state = accepted(by=by)
    for _ in range(3):
        state = published(state)
        state = settle(state, LATER, result(newest(state), ResultStatus.EXPIRED), by).state

    assert task_of(state).status is TaskStatus.FAILED
    assert task_of(state).error_code == "expired"


@pytest.mark.parametrize(("idempotent", "attempts"), [(True, 2), (False, 1)])
def test_an_error_is_retried_only_when_running_again_is_harmless(idempotent: bool, attempts: int) -> None:
    by = assigner(Agents("a1", "a2", idempotent=idempotent))
    state = published(accepted(by=by))
    failed = result(newest(state), ResultStatus.ERROR, can_retry=True, error_code="agent_error")

    step = settle(state, LATER, failed, by)

    assert len(step.state.attempts) == attempts


def test_an_error_that_cant_be_retried_fails_the_part_without_showing_the_agents_text() -> None:
    state = published(accepted())
    failed = result(newest(state), ResultStatus.ERROR, error_message="Traceback ...", result=ResultBody())

    step = settle(state, LATER, failed, assigner())

    assert task_of(step.state).error_code == "agent_error"
    assert "Traceback" not in (step.state.request.answer or "")
    assert step.state.request.status is RequestStatus.FAILED


def test_a_business_error_fails_the_part_and_counts_as_a_failed_attempt() -> None:
    state = published(accepted())

    step = settle(state, LATER, result(newest(state), business_error=True), assigner())

    assert task_of(step.state).status is TaskStatus.FAILED
    assert task_of(step.state).error_code == "business_error"
    assert newest(step.state).status is AttemptStatus.FAILED


def test_a_business_error_after_a_failure_of_the_same_attempt_ends_the_task() -> None:
    by = assigner(Agents("a1", "a2"))
    state = published(accepted(by=by))
    first = newest(state)
    state = settle(state, LATER, result(first, ResultStatus.ERROR, can_retry=True), by).state

    step = settle(state, LATER, result(first, business_error=True), by)

    assert task_of(step.state).error_code == "business_error"
    assert [a.status for a in step.state.attempts] == [AttemptStatus.FAILED, AttemptStatus.ABANDONED]


def test_needs_input_asks_the_agents_question() -> None:
    state = published(accepted())
    question = result(newest(state), ResultStatus.NEEDS_INPUT, result=ResultBody(text="Which order?"))

    step = settle(state, LATER, question, assigner())

    assert task_of(step.state).status is TaskStatus.NEEDS_INPUT
    assert step.state.request.status is RequestStatus.PARTIAL
    assert step.state.request.answer == "Which order?"


def test_a_superseded_failure_does_not_disturb_the_newer_attempt() -> None:
    by = assigner(Agents("a1", "a2"))
    state = published(accepted(by=by))
    first = newest(state)
    state = published(settle(state, LATER, result(first, ResultStatus.BUSY), by).state)

    step = settle(state, LATER, result(first, ResultStatus.ERROR), by)

    assert step.state == state
    assert [r.kind for r in step.results] == [ResultKind.SUPERSEDED]


def test_an_older_attempts_success_ends_the_task_and_abandons_the_newer_attempt() -> None:
    by = assigner(Agents("a1", "a2"))
    state = published(accepted(by=by))
    first = newest(state)
    state = published(settle(state, LATER, result(first, ResultStatus.BUSY), by).state)

    step = settle(state, LATER, result(first), by)

    assert task_of(step.state).status is TaskStatus.COMPLETED
    assert task_of(step.state).agent_id == "a1"
    assert [a.status for a in step.state.attempts] == [AttemptStatus.SUCCEEDED, AttemptStatus.ABANDONED]


def test_a_result_opens_the_task_that_waited_for_it_in_the_same_step() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),))
    state = published(accepted(intent(0), quote))
    assert task_of(state, 1).status is TaskStatus.WAITING

    step = settle(state, LATER, result(newest(state)), assigner())

    assert task_of(step.state, 1).status is TaskStatus.OPEN
    assert task_of(step.state, 1).inputs == {"amount": 12.5}
    assert newest(step.state, 1).claimed_by == "r1"
    assert step.state.request.status is RequestStatus.OPEN


def test_a_waiting_task_whose_agents_are_gone_ends_unavailable() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),))
    state = published(accepted(intent(0), quote))

    step = settle(state, LATER, result(newest(state)), assigner(Agents(outcome=Outcome.UNAVAILABLE)))

    assert task_of(step.state, 1).status is TaskStatus.UNAVAILABLE
    assert task_of(step.state, 1).retry_after_s == 3
    assert step.state.request.status is RequestStatus.PARTIAL


@pytest.mark.parametrize(
    ("status", "ended"),
    [(ResultStatus.ERROR, TaskStatus.FAILED), (ResultStatus.BUSY, TaskStatus.UNAVAILABLE)],
)
def test_the_failure_of_a_lapsed_last_attempt_ends_the_task_at_once(
    status: ResultStatus, ended: TaskStatus
) -> None:
    by = assigner(Agents("a1"), rules=AttemptRules(max_attempts=1))
    state = expire(published(accepted(by=by)), NOW + 15_000, by).state
    assert newest(state).status is AttemptStatus.LAPSED

    step = settle(state, NOW + 15_100, result(newest(state), status), by)

    assert task_of(step.state).status is ended
    assert [r.kind for r in step.results] == [ResultKind.ACCEPTED]


@pytest.mark.parametrize(
    ("idempotent", "code", "status"),
    [
        (False, "outcome_unknown", TaskStatus.OUTCOME_UNKNOWN),
        (False, "timeout", TaskStatus.OUTCOME_UNKNOWN),
        (True, "timeout", TaskStatus.FAILED),
        (False, "agent_error", TaskStatus.FAILED),
    ],
)
def test_what_may_have_run_without_a_result_has_a_state_of_its_own(
    idempotent: bool, code: str, status: TaskStatus
) -> None:
    by = assigner(Agents("a1", idempotent=idempotent))
    state = published(accepted(by=by))

    step = settle(state, LATER, result(newest(state), ResultStatus.ERROR, error_code=code), by)

    assert task_of(step.state).status is status


def test_work_that_the_only_agent_declines_waits_for_it_while_nobody_can_take_it() -> None:
    agents = Agents("a1")
    by = assigner(agents)
    state = published(accepted(by=by))
    agents.agents.clear()  # it drains

    waiting = settle(state, LATER, result(newest(state), ResultStatus.BUSY), by).state

    assert task_of(waiting).status is TaskStatus.OPEN
    assert (newest(waiting).agent_id, newest(waiting).status) == ("a1", AttemptStatus.DUE)
    assert newest(waiting).not_before_ms == LATER + 800
    assert newest(waiting).claimed_by is None


@pytest.mark.parametrize(("at", "attempts"), [(NOW + 29_500, 3), (LATER, 1)])
def test_who_has_no_time_or_no_attempt_left_does_not_wait(at: int, attempts: int) -> None:
    agents = Agents("a1")
    by = assigner(agents, rules=AttemptRules(max_attempts=attempts))
    state = published(accepted(by=by))
    agents.agents.clear()

    ended = settle(state, at, result(newest(state), ResultStatus.BUSY), by).state

    assert task_of(ended).status is TaskStatus.UNAVAILABLE


def test_who_could_be_asked_but_may_not_be_now_is_not_waited_for() -> None:
    by = assigner(Agents("a1", "a2"), retries=Spent())
    state = published(accepted(by=by))

    ended = settle(state, LATER, result(newest(state), ResultStatus.BUSY), by).state

    assert task_of(ended).status is TaskStatus.UNAVAILABLE


def test_what_an_earlier_attempt_may_have_run_is_not_given_to_who_must_not_run_it_twice() -> None:
    agents = Agents("a1", "a2")
    by = assigner(agents)
    lapsed = expire(published(accepted(by=by)), NOW + 15_000, by).state
    agents.idempotent = False
    agents.agents.append("a3")

    ended = settle(lapsed, NOW + 15_100, result(newest(lapsed), ResultStatus.BUSY), by).state

    assert len(ended.attempts) == 2
    assert task_of(ended).status is TaskStatus.UNAVAILABLE
