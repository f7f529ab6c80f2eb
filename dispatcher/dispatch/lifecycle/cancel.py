"""Ending a request because its caller wants it no more (pure)."""

from dispatcher.dispatch.lifecycle.advance import advance
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, TaskStatus
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.records import replace


def cancel(state: RequestState, now_ms: int, assigner: Assigner) -> Step:
    """End every task that has not ended; parts that have stay as they are.

    What already ran is not undone. Does nothing to a request that has ended.
    """
    draft = Draft(state, now_ms)
    for task in draft.tasks:
        if not task.status.is_terminal:
            draft.end_attempts(task.task_id, AttemptStatus.ABANDONED)
            draft.put_task(replace(task, status=TaskStatus.CANCELLED, error_code="cancelled", ranking=None))
    advance(draft, assigner)
    return draft.step()
