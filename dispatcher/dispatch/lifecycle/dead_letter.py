"""Dead letters: work that ended without success, and frames that nobody can read (pure).

A task that ended badly needs no second record: the ledger has it, with its attempts. Kept beside it
are only frames that belong to no known task. `cause_of` sorts them all into five classes.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from dispatcher.channel.channel import DeadReason
from dispatcher.dispatch.lifecycle.advance import advance
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, RequestState, Task
from dispatcher.dispatch.lifecycle.settle import MAY_HAVE_RUN, failed_status, same_token
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import TaskId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.records import replace


class Cause(StrEnum):
    """Why it is dead."""

    POISON = "poison"
    """It can't be read, or whoever tries to do it dies."""
    EXHAUSTED = "exhausted"
    """No attempt brought a result."""
    EXPIRED = "expired"
    """Its time was over before it could start."""
    UNAUTHORISED = "unauthorised"
    """The caller had no right to it any more, or the agent did not take us for who we are."""
    AGENT_ERROR = "agent_error"
    """The agent said that it failed."""


CODES: Mapping[Cause, frozenset[str]] = {
    Cause.POISON: frozenset(
        {"poison", "delivery_limit", "rejected", "result_too_large", "http_unreadable", "http_too_large"}
    ),
    Cause.EXHAUSTED: MAY_HAVE_RUN | {"busy", "unavailable"},
    Cause.EXPIRED: frozenset({"no_capacity", "deadline_exceeded", "expired"}),
    Cause.UNAUTHORISED: frozenset({"unauthorised", "http_401", "http_403"}),
}
"""Error codes of tasks by cause; every other code is an agent's own error."""


def cause_of(error_code: str | None) -> Cause:
    """The class of a task's error code."""
    return next((cause for cause, codes in CODES.items() if error_code in codes), Cause.AGENT_ERROR)


def may_have_run(task: Task, attempts: Sequence[Attempt]) -> bool:
    """Whether somebody may have begun it; of what an operator repeats that is taken for granted."""
    return task.repeat > 0 or any(attempt.may_have_run for attempt in attempts)


def must_stay(task: Task, attempts: Sequence[Attempt]) -> bool:
    """Whether only the agent that had it may get it again: the inbox there knows what became of it (I2)."""
    return may_have_run(task, attempts) and not task.idempotent


def dead_lettered(
    state: RequestState, now_ms: int, frame: TaskFrame, reason: DeadReason, assigner: Assigner
) -> Step:
    """The broker gave up an attempt's frame.

    One that its agent could not read is tried elsewhere. One that was given back too often may have
    killed whoever ran it: its task ends. One that expired meets its own times in the ledger.
    """
    draft = Draft(state, now_ms)
    task = draft.task(TaskId(frame.task_id))
    attempt = draft.attempt(TaskId(frame.task_id), frame.attempt)
    is_open = attempt is not None and attempt.status.is_open
    if task is None or attempt is None or not is_open or not same_token(attempt.token, frame.token):
        return draft.step()
    if reason is DeadReason.REJECTED:
        draft.put_attempt(replace(attempt, status=AttemptStatus.NOT_STARTED, error_code="rejected"))
        if not assigner.try_again(draft, task, surely_not_started=True):
            draft.put_task(replace(task, status=failed_status(task, "rejected"), error_code="rejected"))
    elif reason is DeadReason.DELIVERY_LIMIT:
        draft.put_attempt(replace(attempt, status=AttemptStatus.LAPSED, error_code="delivery_limit"))
        draft.end_attempts(task.task_id, AttemptStatus.ABANDONED)
        status = failed_status(task, "outcome_unknown")
        draft.put_task(replace(task, status=status, error_code="delivery_limit"))
    advance(draft, assigner)
    return draft.step()
