"""What an agent says while it works: started, still at it, how far, a first piece of the result (pure).

Signals count only from the newest attempt while it is open: those of an agent that was stopped and
woke up change nothing, though its result still may (I3, I5).
"""

from dataclasses import replace

from dispatcher.dispatch.ledger import Step
from dispatcher.dispatch.request import Attempt, AttemptStatus, PartialRecord, RequestState, Task
from dispatcher.dispatch.settle import same_token
from dispatcher.dispatch.transition import Draft
from dispatcher.identifiers import TaskId
from dispatcher.protocol.frames import PartialFrame, ProgressFrame, RenewFrame, SignalFrame, StartedFrame

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
            draft.put_attempt(_running(task, attempt, now_ms))
        case RenewFrame() if attempt.lease_ms is not None:
            draft.put_attempt(_running(task, attempt, now_ms))
        case ProgressFrame():
            progress = {"fraction": frame.fraction, "note": frame.note}
            draft.put_attempt(replace(attempt, progress=progress))
        case PartialFrame() if frame.sequence < MAX_PARTIALS:
            draft.put_partial(_partial(attempt, frame))
    return draft.step()


def _counts(draft: Draft, attempt: Attempt, token: str) -> bool:
    newest = draft.attempts_of(attempt.task_id)[-1]
    return same_token(attempt.token, token) and attempt.number == newest.number and attempt.status.is_open


def _running(task: Task, attempt: Attempt, now_ms: int) -> Attempt:
    """The attempt with its lease running from now; the signal may come before the publish was noted."""
    lives_ms = attempt.timeout_ms if attempt.lease_ms is None else attempt.lease_ms
    lapse_ms = now_ms + lives_ms
    if attempt.lease_ms is None and attempt.lapse_ms is not None:
        lapse_ms = attempt.lapse_ms
    return replace(
        attempt,
        status=AttemptStatus.PUBLISHED,
        published_ms=attempt.published_ms or now_ms,
        started_ms=attempt.started_ms or now_ms,
        lapse_ms=lapse_ms if task.deadline_ms is None else min(lapse_ms, task.deadline_ms),
    )


def _partial(attempt: Attempt, frame: PartialFrame) -> PartialRecord:
    return PartialRecord(
        task_id=attempt.task_id,
        request_id=attempt.request_id,
        attempt=attempt.number,
        sequence=frame.sequence,
        document=frame.result.model_dump_json(),
    )
