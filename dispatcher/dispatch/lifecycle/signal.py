"""What an agent says while it works: started, still at it, how far, a first piece of the result (pure).

Signals count only from the newest attempt: those of an agent that was stopped and woke up when another
attempt was made change nothing, though its result still may (I3, I5). A lease that lapsed while nobody
could hear its renewals, and that no other attempt followed, is taken up again.
"""

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, PartialRecord, RequestState, Task
from dispatcher.dispatch.lifecycle.settle import same_token
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import TaskId
from dispatcher.protocol.frames import PartialFrame, ProgressFrame, RenewFrame, SignalFrame, StartedFrame
from dispatcher.records import replace

MAX_PARTIALS = 2_000
"""Pieces kept per attempt; later ones are dropped, the result holds everything anyway."""


def note(state: RequestState, now_ms: int, frame: SignalFrame) -> Step:
    """Apply a signal frame; one that doesn't count changes nothing."""
    draft = Draft(state, now_ms)
    task = draft.task(TaskId(frame.task_id))
    attempt = draft.attempt(TaskId(frame.task_id), frame.attempt)
    if task is None or attempt is None or not _counts(draft, attempt, frame.token):
        return draft.step()
    match frame:
        case StartedFrame():
            _run(draft, task, attempt)
        case RenewFrame() if attempt.lease_ms is not None:
            _run(draft, task, attempt)
        case ProgressFrame() if attempt.status.is_open:
            progress = {"fraction": frame.fraction, "note": frame.note}
            draft.put_attempt(replace(attempt, progress=progress))
        case PartialFrame() if attempt.status.is_open and frame.sequence < MAX_PARTIALS:
            draft.put_partial(_partial(attempt, frame))
    return draft.step()


def _counts(draft: Draft, attempt: Attempt, token: str) -> bool:
    newest = draft.attempts_of(attempt.task_id)[-1]
    may_be_at_it = attempt.status.is_open or _has_only_lapsed(draft, attempt)
    return same_token(attempt.token, token) and attempt.number == newest.number and may_be_at_it


def _has_only_lapsed(draft: Draft, attempt: Attempt) -> bool:
    """Whether its lease ran out and its task goes on all the same."""
    goes_on = not draft.task_of(attempt).status.is_terminal
    return goes_on and attempt.status is AttemptStatus.LAPSED and attempt.lease_ms is not None


def _run(draft: Draft, task: Task, attempt: Attempt) -> None:
    """Let the lease run from now; the signal may come before the publish was noted, or after a lapse."""
    if attempt.status is AttemptStatus.LAPSED:
        deadline_ms = min((task.opened_ms or draft.now_ms) + task.timeout_ms, draft.request.deadline_ms)
        task = replace(task, deadline_ms=deadline_ms)
        draft.put_task(task)
    lives_ms = attempt.timeout_ms if attempt.lease_ms is None else attempt.lease_ms
    lapse_ms = draft.now_ms + lives_ms
    if attempt.lease_ms is None and attempt.lapse_ms is not None:
        lapse_ms = attempt.lapse_ms
    running = replace(
        attempt,
        status=AttemptStatus.PUBLISHED,
        error_code=None,
        published_ms=attempt.published_ms or draft.now_ms,
        started_ms=attempt.started_ms or draft.now_ms,
        lapse_ms=lapse_ms if task.deadline_ms is None else min(lapse_ms, task.deadline_ms),
    )
    draft.put_attempt(running)


def _partial(attempt: Attempt, frame: PartialFrame) -> PartialRecord:
    return PartialRecord(
        task_id=attempt.task_id,
        request_id=attempt.request_id,
        attempt=attempt.number,
        sequence=frame.sequence,
        document=frame.result.model_dump_json(),
    )
