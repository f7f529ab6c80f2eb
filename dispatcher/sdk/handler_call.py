"""One call of a handler, as it happens on the handler's own loop or thread."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any

from dispatcher.errors import RequestError
from dispatcher.sdk.cancellation import Stop
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.outcome import CANCELLED, EXPIRED, Outcome, UnusableReplyError, failure, outcome_of
from dispatcher.sdk.pieces import Joined, Piece
from dispatcher.sdk.reply import Answer, BusinessError, NeedsInput
from dispatcher.sdk.task_view import TaskView

_log = logging.getLogger(__name__)


def _in_time() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One run of a handler within `seconds`.

    After that an async one is cancelled and has `grace_s` to end before it counts as stuck.
    `is_late` is asked once more when the handler's own loop or thread has it: then it doesn't run.
    `put` takes the pieces of a stream; the next one is asked for when the future is done.
    """

    handler: Handler
    fields: dict[str, Any] = field(repr=False)
    view: TaskView = field(repr=False)
    seconds: float
    grace_s: float = 0.25
    is_late: Callable[[], bool] = _in_time
    put: Callable[[Piece], Future[None]] | None = None

    def facts(self) -> dict[str, object]:
        """What log lines about it say."""
        return {
            "agent_id": self.handler.agent_id,
            "request_id": self.view.request_id,
            "task_id": self.view.task_id,
            "capability": self.handler.capability,
            "attempt": self.view.attempt,
        }


class _Stopped(Exception):  # noqa: N818 - no error
    """A stream was told to stop between two pieces."""


async def run_async(call: Call, stop: Stop) -> Outcome:
    """How an async handler ended; its own cancellation, by whoever it was, is a failure of it."""
    try:
        stop.listen(min(call.seconds, call.view.time_left()))
        if call.is_late():
            return EXPIRED
        begun = call.handler.function(*call.handler.arguments(call.fields, call.view))
        is_stream = call.handler.signature.is_stream
        return _ended(call, await (_joined_async(call, begun) if is_stream else begun))
    except asyncio.CancelledError:
        if stop.is_set:
            return CANCELLED
        if stop.has_expired:
            return timed_out(call)
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise anything
        return timed_out(call) if stop.has_expired else _failed(call, error)
    finally:
        stop.leave()


def run_blocking(call: Call) -> Outcome:
    """How a blocking handler ended."""
    try:
        return EXPIRED if call.is_late() else _ended(call, _answer(call))
    except BaseException as error:  # noqa: BLE001 - its key would stay taken for ever
        return _failed(call, error)


def timed_out(call: Call) -> Outcome:
    """What is told of a handler whose time is up."""
    return failure("timeout", "the handler used up its time", can_retry=call.handler.idempotent)


def _answer(call: Call) -> Answer:
    begun = call.handler.function(*call.handler.arguments(call.fields, call.view))
    return _joined(call, begun) if call.handler.signature.is_stream else begun


def _joined(call: Call, stream: Generator[object]) -> Answer:
    joined = Joined()
    with closing(stream):
        for yielded in stream:
            piece = joined.add(yielded)
            if call.put is not None:
                call.put(piece).result()
            if call.view.is_cancelled:
                raise _Stopped
    return joined.reply()


async def _joined_async(call: Call, stream: AsyncGenerator[object]) -> Answer:
    joined = Joined()
    async with aclosing(stream):
        async for yielded in stream:
            piece = joined.add(yielded)
            if call.put is not None:
                await asyncio.wrap_future(call.put(piece))
    return joined.reply()


def _ended(call: Call, answer: Answer) -> Outcome:
    try:
        return outcome_of(answer, call.handler.signature.output_model)
    except UnusableReplyError as error:
        return _unusable(call, error)


def _unusable(call: Call, error: UnusableReplyError) -> Outcome:
    _log.warning("reply.unusable", extra={**call.facts(), "reason": error.message})
    return failure(error.error_code, error.message)


def _failed(call: Call, error: BaseException) -> Outcome:
    match error:
        case NeedsInput() | BusinessError():
            return _ended(call, error)
        case UnusableReplyError():
            return _unusable(call, error)
        case RequestError():
            return failure(error.error_code, error.message)
        case _Stopped():
            return CANCELLED
    _log.warning("handler.failed", extra=call.facts(), exc_info=error)
    return failure("agent_error", _words(error), can_retry=call.handler.idempotent)


def _words(error: BaseException) -> str:
    """What the error says of itself, which is a handler's code too."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - the rest of the failure is still to be told
        return name
