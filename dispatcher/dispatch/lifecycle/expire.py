"""What happens when a task could not be handed over, got lost, or its time ran out."""

from dispatcher.dispatch.lifecycle.advance import advance
from dispatcher.dispatch.lifecycle.assign import Assigner, has_attempts_left
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, RequestState, Task, TaskStatus
from dispatcher.dispatch.lifecycle.settle import failed_status
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import ReplicaId
from dispatcher.records import replace

LOOK_AGAIN_MS = 1_000
"""How soon another agent is looked for where none was there to take what may run again."""


def not_delivered(
    state: RequestState, now_ms: int, attempt: Attempt, error_code: str, assigner: Assigner
) -> Step:
    """The channel did not take the attempt that this replica claimed.

    Surely not started only if it was never claimed before: an earlier publish whose confirmation
    got lost may be running (I2). Then an idempotent task goes elsewhere and any other waits for
    its result or its deadline. Does nothing where the claim is over or the attempt went on.
    """
    draft = Draft(state, now_ms)
    current = draft.attempt(attempt.task_id, attempt.number)
    if current is None or not _is_ours(current, now_ms, assigner):
        return draft.step()
    task = draft.task_of(current)
    if current.published_ms is None:
        draft.put_attempt(replace(current, status=AttemptStatus.NOT_STARTED, error_code=error_code))
        if not assigner.try_again(draft, task, surely_not_started=True):
            draft.put_task(
                replace(task, status=TaskStatus.UNAVAILABLE, error_code=told_as(error_code), retry_after_s=1)
            )
    elif task.idempotent:
        draft.put_attempt(replace(current, status=AttemptStatus.LAPSED, error_code=error_code))
        assigner.try_again(draft, task, surely_not_started=False)
    advance(draft, assigner)
    return draft.step()


def told_as(error_code: str) -> str:
    """What the part says of a delivery that failed: the transport's own words stay with the attempt."""
    return error_code if error_code == "unauthorised" else "unavailable"


def move_on(state: RequestState, now_ms: int, attempt: Attempt, assigner: Assigner) -> Step:
    """The attempt's agent is gone: give the task to another one, else leave it waiting unclaimed.

    It waits at the end of the line: those behind it may have somebody else to go to.
    """
    draft = Draft(state, now_ms)
    current = draft.attempt(attempt.task_id, attempt.number)
    if current is None or not _is_ours(current, now_ms, assigner):
        return draft.step()
    if not assigner.move(draft, draft.task_of(current), current):
        waiting = replace(current, claimed_by=None, claimed_until_ms=None, not_before_ms=now_ms)
        draft.put_attempt(waiting)
    return draft.step()


def release(state: RequestState, now_ms: int, attempt: Attempt, replica: ReplicaId) -> Step:
    """The replica's claim of the attempt ends, and surely nothing was sent by it.

    Else the next claim would take it for maybe sent (I2). So it is given back after its time too, as long as
    nobody claimed the attempt since; what an earlier claim may have sent stays known by `published_ms`.
    """
    draft = Draft(state, now_ms)
    current = draft.attempt(attempt.task_id, attempt.number)
    if current is not None and _is_held_by(replica, current, attempt.claimed_until_ms):
        draft.put_attempt(replace(current, claimed_by=None, claimed_until_ms=None))
    return draft.step()


def publish_again(state: RequestState, now_ms: int, attempt: Attempt) -> Step:
    """The broker lost a published attempt: the same attempt is due again, under the same token.

    Does nothing to one that has ended; its agent answers a repetition from its inbox (I2).
    """
    draft = Draft(state, now_ms)
    current = draft.attempt(attempt.task_id, attempt.number)
    if current is not None and current.status is AttemptStatus.PUBLISHED:
        due = AttemptStatus.DUE
        draft.put_attempt(replace(current, status=due, claimed_by=None, claimed_until_ms=None))
    return draft.step()


def expire(state: RequestState, now_ms: int, assigner: Assigner, *, hold_leases: bool = False) -> Step:
    """End what is past its time: attempts lapse, tasks and the request meet their deadlines.

    With `hold_leases` no lease lapses: of late, renewals could not be heard. A lapsed attempt of an
    idempotent task is followed by another one where I7 allows it; the lapsed attempt's own result
    still counts if it comes first (I3).
    """
    draft = Draft(state, now_ms)
    request_over = now_ms >= draft.request.deadline_ms
    for task in draft.tasks:
        if task.status.is_terminal:
            continue
        if request_over or (task.deadline_ms is not None and now_ms >= task.deadline_ms):
            _end_task(draft, task)
        else:
            _lapse_attempts(draft, task, assigner, hold_leases=hold_leases)
    advance(draft, assigner)
    return draft.step()


def _is_ours(attempt: Attempt, now_ms: int, assigner: Assigner) -> bool:
    is_claimed = attempt.claimed_by == assigner.replica and now_ms < (attempt.claimed_until_ms or 0)
    return attempt.status is AttemptStatus.DUE and is_claimed


def _is_held_by(replica: ReplicaId, attempt: Attempt, until_ms: int | None) -> bool:
    is_same = attempt.claimed_by == replica and attempt.claimed_until_ms == until_ms
    return attempt.status is AttemptStatus.DUE and is_same


def _end_task(draft: Draft, task: Task) -> None:
    # A replica notes a publish after it, and may die in between: its claim counts as well.
    maybe_ran = any(attempt.may_have_run for attempt in draft.attempts_of(task.task_id))
    draft.end_attempts(task.task_id, AttemptStatus.ABANDONED)
    if task.status is TaskStatus.WAITING:
        draft.put_task(replace(task, status=TaskStatus.SKIPPED, error_code="deadline_exceeded"))
    elif maybe_ran:
        draft.put_task(replace(task, status=failed_status(task, "timeout"), error_code="timeout"))
    else:
        draft.put_task(
            replace(task, status=TaskStatus.UNAVAILABLE, error_code="no_capacity", retry_after_s=1)
        )


def _lapse_attempts(draft: Draft, task: Task, assigner: Assigner, *, hold_leases: bool) -> None:
    for attempt in draft.attempts_of(task.task_id):
        held = hold_leases and attempt.lease_ms is not None and attempt.started_ms is not None
        if not held and _is_over(attempt, draft.now_ms):
            again = assigner.try_again(draft, draft.task_of(attempt), surely_not_started=False)
            if not again and _may_find_somebody(draft, attempt, assigner):
                draft.put_attempt(replace(attempt, lapse_ms=draft.now_ms + LOOK_AGAIN_MS))
                continue
            draft.put_attempt(replace(attempt, status=AttemptStatus.LAPSED, error_code="timeout"))
            if not again:
                _wait_for_the_late(draft, attempt, assigner)


def _is_over(attempt: Attempt, now_ms: int) -> bool:
    lapses = attempt.status is AttemptStatus.PUBLISHED and attempt.lapse_ms is not None
    return lapses and now_ms >= (attempt.lapse_ms or 0)


def _may_find_somebody(draft: Draft, attempt: Attempt, assigner: Assigner) -> bool:
    """Whether only agents are missing, as while they start anew: then the attempt lapses a little later."""
    task = draft.task_of(attempt)
    tried = len(draft.attempts_of(task.task_id))
    is_short = attempt.lease_ms is None
    return is_short and task.idempotent and has_attempts_left(task, tried, draft.now_ms, assigner.rules)


def _wait_for_the_late(draft: Draft, attempt: Attempt, assigner: Assigner) -> None:
    """The lease of a long task ran out and nobody else may take it: its result has a last chance to come."""
    if attempt.lease_ms is None:
        return
    task = draft.task_of(attempt)
    last_ms = draft.now_ms + assigner.rules.attempt_timeout_ms
    draft.put_task(replace(task, deadline_ms=min(task.deadline_ms or last_ms, last_ms)))
