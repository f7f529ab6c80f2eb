"""What happens when a task could not be handed over, or its time ran out."""

from dataclasses import replace

from dispatcher.dispatch.advance import advance
from dispatcher.dispatch.assign import Assigner
from dispatcher.dispatch.ledger import Step
from dispatcher.dispatch.request import (
    Attempt,
    AttemptStatus,
    RequestState,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.transition import Draft


def not_delivered(
    state: RequestState, now_ms: int, attempt: Attempt, error_code: str, assigner: Assigner
) -> Step:
    """The channel surely did not take the attempt: make another one, or end the task as unavailable.

    Does nothing to an attempt that is no longer due.
    """
    draft = Draft(state, now_ms)
    current = draft.attempt(attempt.task_id, attempt.number)
    task = draft.task(attempt.task_id)
    if current is None or task is None or current.status is not AttemptStatus.DUE:
        return draft.step()
    draft.put_attempt(replace(current, status=AttemptStatus.NOT_STARTED, error_code=error_code))
    if not task.status.is_terminal and not assigner.try_again(draft, task, surely_not_started=True):
        draft.put_task(replace(task, status=TaskStatus.UNAVAILABLE, error_code=error_code, retry_after_s=1))
    advance(draft, assigner)
    return draft.step()


def expire(state: RequestState, now_ms: int, assigner: Assigner) -> Step:
    """End what is past its time: attempts lapse, tasks and the request meet their deadlines.

    A lapsed attempt of an idempotent task is followed by another one where I7 allows it; the
    lapsed attempt's own result still counts if it comes first (I3).
    """
    draft = Draft(state, now_ms)
    request_over = now_ms >= draft.request.deadline_ms
    for task in draft.tasks:
        if task.status.is_terminal:
            continue
        if request_over or (task.deadline_ms is not None and now_ms >= task.deadline_ms):
            _end_task(draft, task)
        else:
            _lapse_attempts(draft, task, assigner)
    advance(draft, assigner)
    return draft.step()


def _end_task(draft: Draft, task: Task) -> None:
    attempts = draft.attempts_of(task.task_id)
    maybe_ran = any(a.published_ms is not None or a.claimed_by is not None for a in attempts)
    draft.end_attempts(task.task_id, AttemptStatus.ABANDONED)
    if task.status is TaskStatus.WAITING:
        draft.put_task(replace(task, status=TaskStatus.SKIPPED, error_code="deadline_exceeded"))
    elif maybe_ran:
        draft.put_task(replace(task, status=TaskStatus.FAILED, error_code="timeout"))
    else:
        draft.put_task(
            replace(task, status=TaskStatus.UNAVAILABLE, error_code="no_capacity", retry_after_s=1)
        )


def _lapse_attempts(draft: Draft, task: Task, assigner: Assigner) -> None:
    for attempt in draft.attempts_of(task.task_id):
        lapse_ms = attempt.lapse_ms
        if attempt.status is AttemptStatus.PUBLISHED and lapse_ms is not None and draft.now_ms >= lapse_ms:
            draft.put_attempt(replace(attempt, status=AttemptStatus.LAPSED, error_code="timeout"))
            assigner.try_again(draft, draft.tasks[task.position], surely_not_started=False)
