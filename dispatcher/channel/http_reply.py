"""What an agent's HTTP reply means: its own result frame, or one made on its behalf.

A reply says that the task surely did not start only where the agent itself can have said so: 429,
or 503 with Retry-After. A bare 503 may come from a proxy that lost the agent in the middle of it.
All of these may come from a proxy, and so are about one sending, as a connection is that breaks: of a
task that may run from an earlier one, and must not run twice, they say nothing (I2). Its result or its
time ends it.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from dispatcher.protocol.frames import ResultFrame, ResultStatus, TaskFrame

ON_BEHALF = "http-channel"
"""The `instance_id` of results that the agent did not write."""
MAY_HELP_AGAIN = frozenset({502, 503, 504})
"""The agent may have run, so only an idempotent task is tried again."""
MAX_PAUSE_S = 60.0
DEFAULT_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP response; `retry_after` is the header's text. Only a 200 has a body here."""

    status: int
    body: bytes = b""
    retry_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A call that was handed over and brought no usable reply: the agent may have run."""

    code: str
    can_retry: bool = True


CUT = Broken(code="http_cut")
SILENT = Broken(code="http_read_timeout")
TOO_SLOW = Broken(code="http_total_timeout", can_retry=False)
"""It was at work all the time that a call may take; another try would take as long."""
BUDGET_OVER = Broken(code="timeout")
"""The attempt's own time is over, as the ledger is about to see too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What follows from a call: a result frame, unless it comes later, and a pause for the agent."""

    frame: bytes | None = None
    pause_s: float = 0.0


def outcome_of(task: TaskFrame, reply: Reply | Broken, *, bound: bool = False) -> Outcome:
    """What a reply to the task means; `bound` as in `Channel.send`."""
    if isinstance(reply, Broken):
        return Outcome() if bound and reply in (CUT, SILENT) else _failed(task, reply)
    if reply.status == 200:
        return _answered(task, reply)
    if reply.status == 202:
        return Outcome()
    if reply.status == 429 or (reply.status == 503 and reply.retry_after is not None):
        return Outcome(
            frame=None if bound else _on_behalf(task, status=ResultStatus.BUSY),
            pause_s=pause_s(reply.retry_after),
        )
    may_have_run = reply.status in MAY_HELP_AGAIN
    if bound and may_have_run:
        return Outcome()
    return _failed(task, Broken(code=f"http_{reply.status}", can_retry=may_have_run))


def not_started(task: TaskFrame, error_code: str) -> bytes:
    """A result for an attempt that surely did not reach its agent although its send had returned."""
    return _on_behalf(task, status=ResultStatus.BUSY, error_code=error_code)


def pause_s(retry_after: str | None) -> float:
    """The seconds of a Retry-After header, at most `MAX_PAUSE_S`.

    A date counts as the default: clocks of two hosts are not compared (I10).
    """
    text = (retry_after or "").strip()
    if not (text.isascii() and text.isdigit()):
        return DEFAULT_PAUSE_S
    # Digits beyond these are a number beyond the limit, and converting them costs time.
    return min(float(text[:9]), MAX_PAUSE_S)


def _answered(task: TaskFrame, reply: Reply) -> Outcome:
    """A frame for another attempt would leave this one open: the agent broke the protocol."""
    asked = (task.request_id, task.task_id, task.attempt, task.token)
    try:
        frame = ResultFrame.model_validate_json(reply.body)
    except ValidationError:
        return _failed(task, Broken(code="http_unreadable"))
    if (frame.request_id, frame.task_id, frame.attempt, frame.token) != asked:
        return _failed(task, Broken(code="http_unreadable"))
    asks_pause = frame.status is ResultStatus.BUSY and reply.retry_after is not None
    return Outcome(frame=reply.body, pause_s=pause_s(reply.retry_after) if asks_pause else 0.0)


def _failed(task: TaskFrame, broken: Broken) -> Outcome:
    frame = _on_behalf(task, status=ResultStatus.ERROR, error_code=broken.code, can_retry=broken.can_retry)
    return Outcome(frame=frame)


def _on_behalf(
    task: TaskFrame, *, status: ResultStatus, error_code: str | None = None, can_retry: bool = False
) -> bytes:
    frame = ResultFrame(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        token=task.token,
        instance_id=ON_BEHALF,
        status=status,
        error_code=error_code,
        error_message="written by the dispatcher: the agent's HTTP reply was no result",
        can_retry=can_retry,
    )
    return frame.model_dump_json().encode()
