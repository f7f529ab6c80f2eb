"""What a received result does to its request (I3, I5)."""

import hashlib
import hmac
from collections.abc import Mapping

import orjson

from dispatcher.channel.http_reply import ON_BEHALF
from dispatcher.dispatch.lifecycle.advance import advance
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    AttemptStatus,
    RequestState,
    ResultKind,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.transition import Draft
from dispatcher.identifiers import InstanceId, TaskId
from dispatcher.protocol.frames import ResultFrame, ResultStatus
from dispatcher.records import replace

MAY_HAVE_RUN = frozenset(
    {
        *("outcome_unknown", "timeout"),
        *("http_cut", "http_read_timeout", "http_total_timeout", "http_502", "http_503", "http_504"),
    }
)
"""Error codes that leave open whether the task was done."""
NOT_STARTED = frozenset({ResultStatus.BUSY, ResultStatus.EXPIRED})


def settle(state: RequestState, now_ms: int, frame: ResultFrame, assigner: Assigner) -> Step:
    """Apply a result frame: the first valid one of any attempt ends its task, later ones are only kept.

    A result whose token doesn't fit its task and attempt is kept as rejected and changes nothing.
    """
    draft = Draft(state, now_ms)
    task = draft.task(TaskId(frame.task_id))
    kind = _apply(draft, task, frame, assigner)
    if task is not None:
        draft.put_result(_record(frame, state, kind))
    advance(draft, assigner)
    return draft.step()


def result_digest(frame: ResultFrame) -> str:
    """SHA-256 over what the agent answered; equal for a replay, whichever attempt carries it.

    Stored: what goes into it, and how it is written, stays as it is.
    """
    content = {
        "status": frame.status,
        "result": {"text": frame.result.text, "data": frame.result.data},
        "business_error": frame.business_error,
        "error_code": frame.error_code,
    }
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def failed_status(task: Task, error_code: str) -> TaskStatus:
    """OUTCOME_UNKNOWN for what may have run, left no result and must not simply run again; else FAILED."""
    unknown = error_code in MAY_HAVE_RUN and not task.idempotent
    return TaskStatus.OUTCOME_UNKNOWN if unknown else TaskStatus.FAILED


def _apply(draft: Draft, task: Task | None, frame: ResultFrame, assigner: Assigner) -> ResultKind:
    attempt = draft.attempt(TaskId(frame.task_id), frame.attempt)
    if task is None or attempt is None or not same_token(attempt.token, frame.token):
        return ResultKind.REJECTED
    if task.status.is_terminal:
        return _kind_after_the_end(task, frame)
    if frame.status in NOT_STARTED or frame.status is ResultStatus.ERROR:
        return _apply_failure(draft, task, attempt, frame, assigner)
    _end_task(draft, task, attempt, frame)
    return ResultKind.ACCEPTED


def same_token(token: str, other: str) -> bool:
    """Whether both are the same, in a time that tells nothing (I5)."""
    return hmac.compare_digest(token.encode(), other.encode())


def _kind_after_the_end(task: Task, frame: ResultFrame) -> ResultKind:
    if task.result_digest is None:
        return ResultKind.LATE
    same = task.result_digest == result_digest(frame)
    return ResultKind.DUPLICATE if same else ResultKind.CONFLICT


def _apply_failure(
    draft: Draft, task: Task, attempt: Attempt, frame: ResultFrame, assigner: Assigner
) -> ResultKind:
    if not _counts(draft, attempt):
        return ResultKind.SUPERSEDED
    not_started = frame.status in NOT_STARTED
    if not_started and not task.idempotent and _was_sent_since(attempt, frame, assigner):
        return ResultKind.SUPERSEDED
    code = frame.error_code or ("agent_error" if frame.status is ResultStatus.ERROR else str(frame.status))
    ended = AttemptStatus.NOT_STARTED if not_started else AttemptStatus.FAILED
    draft.put_attempt(replace(attempt, status=ended, error_code=code))
    may_help = not_started or frame.can_retry
    if may_help and assigner.try_again(draft, task, surely_not_started=not_started):
        return ResultKind.SUPERSEDED
    if not_started and assigner.wait(draft, task, attempt):
        return ResultKind.SUPERSEDED
    if frame.status is ResultStatus.BUSY:
        draft.put_task(replace(task, status=TaskStatus.UNAVAILABLE, error_code="busy", retry_after_s=1))
    else:
        status = failed_status(task, code)
        draft.put_task(replace(task, status=status, error_code=code, result_digest=result_digest(frame)))
    return ResultKind.ACCEPTED


def _was_sent_since(attempt: Attempt, frame: ResultFrame, assigner: Assigner) -> bool:
    """Whether it was a call of this replica that did not start it, and another one's may have (I2)."""
    return frame.instance_id == ON_BEHALF and attempt.claimed_by != assigner.replica


def _counts(draft: Draft, attempt: Attempt) -> bool:
    """Whether a failure says something new: of an open attempt, or of a lapsed one that none followed."""
    others = any(a.status.is_open for a in draft.attempts_of(attempt.task_id))
    return attempt.status.is_open or (attempt.status is AttemptStatus.LAPSED and not others)


def _end_task(draft: Draft, task: Task, attempt: Attempt, frame: ResultFrame) -> None:
    failed = frame.business_error
    ended = AttemptStatus.FAILED if failed else AttemptStatus.SUCCEEDED
    if attempt.status is not ended:
        now_ms = draft.now_ms
        draft.put_attempt(replace(attempt, status=ended, error_code=frame.error_code, finished_ms=now_ms))
    draft.end_attempts(task.task_id, AttemptStatus.ABANDONED)
    if attempt.number == draft.attempts_of(task.task_id)[-1].number:
        draft.update_context(frame.context_update)
    status = TaskStatus.COMPLETED
    if failed:
        status = TaskStatus.FAILED
    elif frame.status is ResultStatus.NEEDS_INPUT:
        status = TaskStatus.NEEDS_INPUT
    data: Mapping[str, object] = frame.result.data
    draft.put_task(
        replace(
            task,
            status=status,
            agent_id=attempt.agent_id,
            finished_ms=draft.now_ms,
            result_text=frame.result.text,
            result_data=data,
            result_digest=result_digest(frame),
            error_code=_error_code(status, frame),
        )
    )


def _error_code(status: TaskStatus, frame: ResultFrame) -> str | None:
    if status is TaskStatus.COMPLETED:
        return None
    if status is TaskStatus.NEEDS_INPUT:
        return "input_missing"
    return frame.error_code or "business_error"


def _record(frame: ResultFrame, state: RequestState, kind: ResultKind) -> ResultRecord:
    return ResultRecord(
        task_id=TaskId(frame.task_id),
        request_id=state.request.request_id,
        attempt=frame.attempt,
        instance_id=InstanceId(frame.instance_id),
        kind=kind,
        document=frame.model_dump_json(exclude={"token"}),
    )
