"""What an agent's reply to a direct call means, and the answer made of it (pure)."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from pydantic import ValidationError

from dispatcher.protocol.frames import ResultFrame, ResultStatus, TaskFrame
from dispatcher.sdk.request_answer import Part, RequestAnswer
from dispatcher.sdk.transport import HttpResponse

_REFUSED = frozenset({401, 403, 404, 413, 429})
_NOT_RUN = frozenset({ResultStatus.BUSY, ResultStatus.EXPIRED})
SENTENCES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "zh": {
            "completed": "已处理完成。",
            "failed": "没有处理成功，请稍后再试。",
            "needs_input": "还需要您补充信息。",
            "outcome_unknown": "是否已经执行还不清楚，请先核实，不要直接重试。",
        },
        "en": {
            "completed": "It is done.",
            "failed": "It did not work out; please try again later.",
            "needs_input": "More information is needed.",
            "outcome_unknown": "It is not known whether it was done; please check before you try again.",
        },
    }
)
"""For a person, where the agent has no words for one."""


class Fate(Enum):
    """What became of a task that has no result."""

    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


def read_reply(task: TaskFrame, response: HttpResponse) -> ResultFrame | Fate:
    """The result, or what became of the task: only what surely did not start may be given to others."""
    has_pause = response.status == 503 and "retry-after" in response.headers
    if response.status in _REFUSED or has_pause:
        return Fate.NOT_RUN
    if response.status != 200:
        return Fate.UNKNOWN
    try:
        frame = ResultFrame.model_validate_json(response.body)
    except ValidationError:
        return Fate.UNKNOWN
    if (frame.task_id, frame.attempt, frame.token) != (task.task_id, task.attempt, task.token):
        return Fate.UNKNOWN
    return Fate.NOT_RUN if frame.status in _NOT_RUN else frame


def answer_of(task: TaskFrame, frame: ResultFrame, score: float, elapsed_ms: int) -> RequestAnswer:
    """The answer in the gateway's shape, marked `direct`."""
    status = _status(frame)
    words = SENTENCES["zh" if (task.context.language or "").startswith("zh") else "en"][status]
    has_words = status in {"completed", "needs_input"} and frame.result.text
    text = frame.result.text if has_words and frame.result.text else words
    part = Part(
        intent=task.payload.text,
        capability=task.capability,
        agent_id=task.agent_id,
        status=status,
        result=_result(frame),
        error=None if status == "completed" else {"code": _code(frame, status), "message": text},
        similarity=1.0,
        score=score,
        attempts=task.attempt,
        waited_ms=0,
        elapsed_ms=elapsed_ms,
        retry_after_s=None,
        progress=None,
        options=[],
        handoff=None,
    )
    whole = {"completed": "completed", "needs_input": "partial"}.get(status, "failed")
    return RequestAnswer(request_id=task.request_id, status=whole, answer=text, parts=[part], direct=True)


def _status(frame: ResultFrame) -> str:
    if frame.status is ResultStatus.NEEDS_INPUT:
        return "needs_input"
    if frame.error_code == "outcome_unknown":
        return "outcome_unknown"
    has_worked = frame.status is ResultStatus.SUCCESS and not frame.business_error
    return "completed" if has_worked else "failed"


def _result(frame: ResultFrame) -> dict[str, object] | None:
    if frame.status is ResultStatus.ERROR:
        return None
    return {"text": frame.result.text, "data": dict(frame.result.data)}


def _code(frame: ResultFrame, status: str) -> str:
    if status == "needs_input":
        return status
    return frame.error_code or ("business_error" if frame.business_error else "agent_error")
