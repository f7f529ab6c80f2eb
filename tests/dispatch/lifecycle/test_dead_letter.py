import pytest

from dispatcher.channel.channel import DeadReason
from dispatcher.dispatch.lifecycle.assign import AttemptRules
from dispatcher.dispatch.lifecycle.dead_letter import Cause, cause_of, dead_lettered, may_have_run, must_stay
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, TaskStatus
from dispatcher.dispatch.lifecycle.task_frame import due_of, task_frame
from dispatcher.protocol.frames import TaskFrame
from dispatcher.records import replace
from tests.dispatch.builders import NOW, Agents, accepted, assigner, newest, published, task_of


def frame_of(state: RequestState) -> TaskFrame:
    return task_frame(due_of(state, newest(state), NOW), "results")


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("delivery_limit", Cause.POISON),
        ("timeout", Cause.EXHAUSTED),
        ("no_capacity", Cause.EXPIRED),
        ("http_503", Cause.EXHAUSTED),
        ("unauthorised", Cause.UNAUTHORISED),
        ("http_403", Cause.UNAUTHORISED),
        ("http_500", Cause.AGENT_ERROR),
        ("agent_error", Cause.AGENT_ERROR),
        ("out_of_stock", Cause.AGENT_ERROR),
        (None, Cause.AGENT_ERROR),
    ],
)
def test_every_code_has_a_cause(code: str | None, cause: Cause) -> None:
    assert cause_of(code) is cause


@pytest.mark.parametrize(
    ("idempotent", "status"), [(True, TaskStatus.FAILED), (False, TaskStatus.OUTCOME_UNKNOWN)]
)
def test_what_was_given_back_too_often_ends_its_task(idempotent: bool, status: TaskStatus) -> None:
    by = assigner(Agents("a1", "a2", idempotent=idempotent))
    state = published(accepted(by=by))

    ended = dead_lettered(state, NOW + 1, frame_of(state), DeadReason.DELIVERY_LIMIT, by).state

    assert (task_of(ended).status, task_of(ended).error_code) == (status, "delivery_limit")
    assert len(ended.attempts) == 1
    assert newest(ended).status is AttemptStatus.LAPSED
    assert ended.request.finished_ms == NOW + 1


def test_what_an_agent_could_not_read_goes_to_another() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = published(accepted(by=by))

    moved = dead_lettered(state, NOW + 1, frame_of(state), DeadReason.REJECTED, by).state

    assert [a.status for a in moved.attempts] == [AttemptStatus.NOT_STARTED, AttemptStatus.DUE]
    assert newest(moved).agent_id == "a2"


def test_what_expired_in_a_queue_is_left_to_its_own_times() -> None:
    state = published(accepted())

    assert dead_lettered(state, NOW + 1, frame_of(state), DeadReason.EXPIRED, assigner()).state == state


def test_a_forged_frame_changes_nothing() -> None:
    state = published(accepted())
    forged = frame_of(state).model_copy(update={"token": "x" * 20})

    assert dead_lettered(state, NOW, forged, DeadReason.DELIVERY_LIMIT, assigner()).state == state


@pytest.mark.parametrize(
    ("status", "sent", "may"),
    [
        (AttemptStatus.FAILED, True, True),
        (AttemptStatus.LAPSED, True, True),
        (AttemptStatus.ABANDONED, True, True),
        (AttemptStatus.ABANDONED, False, False),
        (AttemptStatus.NOT_STARTED, True, False),
    ],
)
def test_what_may_have_run_and_must_not_run_twice_stays(status: AttemptStatus, sent: bool, may: bool) -> None:
    state = published(accepted(by=assigner(Agents("a1", idempotent=False))))
    attempt = replace(newest(state), status=status, claimed_by=None)
    attempts = [attempt if sent else replace(attempt, published_ms=None)]

    assert must_stay(task_of(state), attempts) is may
    assert not must_stay(replace(task_of(state), idempotent=True), attempts)


def test_of_what_an_operator_repeated_it_is_taken_for_granted_that_it_ran() -> None:
    task = replace(task_of(accepted()), repeat=1, idempotent=False)

    assert may_have_run(task, ())
    assert must_stay(task, ())


def test_what_nobody_can_read_ends_its_task() -> None:
    by = assigner(Agents("a1"), rules=AttemptRules(max_attempts=1))
    state = published(accepted(by=by))

    ended = dead_lettered(state, NOW + 1, frame_of(state), DeadReason.REJECTED, by).state

    assert (task_of(ended).status, task_of(ended).error_code) == (TaskStatus.FAILED, "rejected")


def test_a_dead_letter_may_come_before_the_publish_was_noted() -> None:
    state = accepted()

    ended = dead_lettered(state, NOW + 1, frame_of(state), DeadReason.DELIVERY_LIMIT, assigner()).state

    assert task_of(ended).error_code == "delivery_limit"
