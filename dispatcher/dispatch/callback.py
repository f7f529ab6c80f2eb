"""What agents over HTTP post themselves: results, and signals of tasks that they took with a 202.

The sender hears whether its token fits, and nobody else's does.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import RequestError, UnavailableError
from dispatcher.identifiers import AgentId, RequestId, TaskId
from dispatcher.protocol.frames import ReportFrame, ResultFrame, SignalFrame
from dispatcher.protocol.link import Settlement

logger = logging.getLogger(__name__)
_REPORT: TypeAdapter[ResultFrame | SignalFrame] = TypeAdapter(ReportFrame)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Takes what was posted at whichever replica; `read` is the ledger's, `on_result` the collector's."""

    read: Callable[[RequestId], Awaitable[RequestState | None]]
    on_result: Callable[[bytes], Awaitable[Settlement]]

    async def accept(self, task_id: TaskId, body: bytes, sender: AgentId | None) -> Settlement:
        """Take a result or signal frame for a task; `sender` is the agent whose key it came with, if any.

        ACK once it is stored, and for a signal that counts no more (I3); DEAD for what is no such
        frame of that task, REQUEUE where it can't be stored now: the agent should post it again.
        Raises RequestError `result_refused` for a token that fits no attempt of the task, or one of
        another agent (I5); such a frame changes nothing, and a result is kept as rejected where the
        task is known.
        """
        frame = _read(body)
        if frame is None or frame.task_id != task_id:
            return Settlement.DEAD
        try:
            state = await self.read(RequestId(frame.request_id))
        except UnavailableError:
            return Settlement.REQUEUE
        holder = _holder(state, frame)
        if holder is not None and sender in {None, holder}:
            return await self.on_result(body)
        facts = {"task_id": task_id, "agent_id": sender, "type": frame.type}
        logger.warning("callback.refused", extra=facts)
        if holder is None and state is not None and isinstance(frame, ResultFrame):
            await self.on_result(body)
        raise RequestError("The token fits no attempt of that task by your agent.", code="result_refused")


def _read(body: bytes) -> ResultFrame | SignalFrame | None:
    try:
        return _REPORT.validate_json(body)
    except ValidationError:
        return None


def _holder(state: RequestState | None, frame: ResultFrame | SignalFrame) -> AgentId | None:
    """The agent of the attempt whose token the frame carries; None where it fits none."""
    for attempt in state.attempts if state is not None else ():
        named = (attempt.task_id, attempt.number) == (frame.task_id, frame.attempt)
        if named and hmac.compare_digest(attempt.token.encode(), frame.token.encode()):
            return attempt.agent_id
    return None
