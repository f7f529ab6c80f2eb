import pytest

from dispatcher.dispatch.lifecycle.dataflow import Ask, Ready, Skip, Wait, resolve_inputs
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestStatus, TaskStatus
from dispatcher.dispatch.lifecycle.transition import (
    ATTEMPT_TRANSITIONS,
    TASK_TRANSITIONS,
    Draft,
    IllegalTransitionError,
)
from dispatcher.records import replace
from tests.dispatch.builders import NOW, accepted, intent, link, newest, task_of


def test_nothing_follows_a_terminal_task() -> None:
    terminal = [status for status in TaskStatus if status.is_terminal]

    assert all(not TASK_TRANSITIONS[status] for status in terminal)
    assert set(TASK_TRANSITIONS) == set(TaskStatus)
    assert set(ATTEMPT_TRANSITIONS) == set(AttemptStatus)


def test_no_attempt_becomes_open_again_but_one_whose_lease_is_renewed_late() -> None:
    ended = [status for status in AttemptStatus if not status.is_open and status is not AttemptStatus.LAPSED]

    assert not any(after.is_open for status in ended for after in ATTEMPT_TRANSITIONS[status])


def test_a_draft_refuses_to_change_an_ended_task() -> None:
    state = accepted()
    draft = Draft(state, NOW)
    draft.put_task(replace(task_of(state), status=TaskStatus.COMPLETED))

    with pytest.raises(IllegalTransitionError, match="completed -> failed"):
        draft.put_task(replace(task_of(state), status=TaskStatus.FAILED))


def test_a_draft_refuses_to_reopen_an_attempt() -> None:
    state = accepted()
    draft = Draft(state, NOW)
    draft.put_attempt(replace(newest(state), status=AttemptStatus.ABANDONED))

    with pytest.raises(IllegalTransitionError, match="abandoned -> due"):
        draft.put_attempt(newest(state))


def test_a_request_ends_once() -> None:
    draft = Draft(accepted(), NOW)
    draft.finish(RequestStatus.COMPLETED, "x")

    with pytest.raises(IllegalTransitionError, match="ends twice"):
        draft.finish(RequestStatus.FAILED, "y")


@pytest.mark.parametrize(
    ("status", "data", "required", "expected"),
    [
        (TaskStatus.OPEN, None, False, Wait),
        (TaskStatus.OPEN, None, True, Wait),
        (TaskStatus.COMPLETED, {"amount": 5}, True, Ready),
        (TaskStatus.COMPLETED, {"amount": None}, True, Skip),
        (TaskStatus.COMPLETED, None, False, Ready),
        (TaskStatus.FAILED, None, True, Skip),
        (TaskStatus.FAILED, None, False, Ready),
    ],
)
def test_an_input_waits_comes_or_is_missed(
    status: TaskStatus, data: dict[str, object] | None, required: bool, expected: type
) -> None:
    producer = replace(task_of(accepted()), status=status, result_data=data)
    consumer = intent(1, links=(link("amount", (0, "amount"), required=required),))

    assert isinstance(resolve_inputs(consumer, [producer]), expected)


def test_the_first_source_that_delivered_wins_but_an_earlier_one_is_waited_for() -> None:
    producer = replace(task_of(accepted()), status=TaskStatus.COMPLETED, result_data={"amount": 7})
    open_one = replace(producer, status=TaskStatus.OPEN, result_data=None)
    consumer = intent(2, links=(link("amount", (0, "amount"), (1, "amount")),))

    assert resolve_inputs(consumer, [open_one, producer]) == Wait()
    failed = replace(open_one, status=TaskStatus.FAILED)
    assert resolve_inputs(consumer, [failed, producer]) == Ready(inputs={"amount": 7})


def test_missing_fields_are_asked_for_before_anything_else() -> None:
    assert resolve_inputs(intent(0, missing=("phone",)), []) == Ask(fields=("phone",))
