"""Where handlers run: apart from the loop that talks to the dispatcher.

Async handlers share an event loop in a thread of its own, a blocking handler gets a thread
for its run. However long one blocks, heartbeats, acknowledgements and deadlines go on; only
native code that never lets go of the interpreter lock could stop them.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from dispatcher.errors import RequestError
from dispatcher.sdk.handler import Handler
from dispatcher.sdk.outcome import Outcome, UnusableReplyError, failure, outcome_of
from dispatcher.sdk.reply import Answer, BusinessError, NeedsInput
from dispatcher.sdk.task_view import TaskView

_JOIN_S = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One run of a handler within `seconds`.

    After that an async one is cancelled and has `grace_s` to end before it counts as stuck.
    """

    handler: Handler
    fields: dict[str, Any] = field(repr=False)
    view: TaskView = field(repr=False)
    seconds: float
    grace_s: float = 0.25


class Run:
    """One run of a handler: what is told when its time is up, and how it really ends."""

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self._call = call
        self._outcome: asyncio.Future[Outcome] = loop.create_future()

    @property
    def has_ended(self) -> bool:
        """Whether the handler is surely not at work any more."""
        return self._outcome.done()

    async def answer(self) -> Outcome:
        """The outcome within the call's time, `timeout` otherwise, whether or not the handler ended."""
        outcome = await self.end_within(self._call.seconds + self._call.grace_s)
        if outcome is None:
            _log.warning("handler.stuck", extra=_facts(self._call))
            return _timed_out(self._call)
        return outcome

    async def end_within(self, seconds: float) -> Outcome | None:
        """How the handler ended, None if it hasn't for so many seconds. Waiting never disturbs it."""
        await asyncio.wait([self._outcome], timeout=seconds)
        return self._outcome.result() if self._outcome.done() else None

    def end(self, outcome: Outcome | None) -> None:
        """Take down how it ended; None when it was broken off, not by us."""
        if outcome is None:
            retry = self._call.handler.idempotent
            outcome = failure("agent_error", "the handler was cancelled", can_retry=retry)
        self._outcome.set_result(outcome)


class HandlerThread:
    """Runs handlers, at most `places` at once.

    A handler that outlives its budget is answered for as `timeout`; a blocking one can't be
    stopped and keeps its place until it ends. Async context manager; leaving it abandons
    what still runs (daemon threads).
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._taken = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> int:
        """Places in use, stuck handlers included."""
        return self._taken

    async def __aenter__(self) -> Self:
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="handlers", daemon=True
        )
        self._thread.start()
        await asyncio.wrap_future(started)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is None or self._stop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, _JOIN_S)

    def take_place(self) -> bool:
        """Reserve a place for one `run`, or say that none is free. Pairs with `run` or `give_back`."""
        if self._taken >= self._places:
            return False
        self._taken += 1
        return True

    def give_back(self) -> None:
        """Free a place that was taken but not used."""
        self._taken -= 1

    def start(self, call: Call) -> Run:
        """Run the handler in a place taken before; the place is free again once the handler has ended."""
        loop = asyncio.get_running_loop()
        run = Run(call, loop)
        try:
            future = self._start(call)
        except RuntimeError:
            self.give_back()
            raise
        future.add_done_callback(lambda ended: _tell(loop, lambda: self._end(run, ended)))
        return run

    async def run(self, call: Call) -> Outcome:
        """The answer of a handler that is started now, in a place taken before."""
        return await self.start(call).answer()

    def _end(self, run: Run, future: Future[Outcome]) -> None:
        self.give_back()
        broken_off = future.cancelled() or future.exception() is not None
        run.end(None if broken_off else future.result())

    def _start(self, call: Call) -> Future[Outcome]:
        if self._loop is None:
            raise RuntimeError("the handler thread is not running")
        if call.handler.is_async:
            return asyncio.run_coroutine_threadsafe(_run_async(call), self._loop)
        future: Future[Outcome] = Future()
        threading.Thread(
            target=_run_blocking, args=(call, future), name=f"handler-{call.handler.capability}", daemon=True
        ).start()
        return future

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        started.set_result(None)
        await self._stop.wait()


async def _run_async(call: Call) -> Outcome:
    limit = asyncio.timeout(call.seconds)
    try:
        async with limit:
            arguments = call.handler.arguments(call.fields, call.view)
            return _ended(call, await call.handler.function(*arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise anything
        return _timed_out(call) if limit.expired() else _failed(call, error)


def _run_blocking(call: Call, future: Future[Outcome]) -> None:
    try:
        arguments = call.handler.arguments(call.fields, call.view)
        outcome = _ended(call, call.handler.function(*arguments))
    except BaseException as error:  # noqa: BLE001 - its key would stay taken for ever
        outcome = _failed(call, error)
    future.set_result(outcome)


def _ended(call: Call, answer: Answer) -> Outcome:
    try:
        return outcome_of(answer, call.handler.signature.output_model)
    except UnusableReplyError as error:
        _log.warning("reply.unusable", extra={**_facts(call), "reason": error.message})
        return failure("agent_error", error.message)


def _failed(call: Call, error: BaseException) -> Outcome:
    match error:
        case NeedsInput() | BusinessError():
            return _ended(call, error)
        case RequestError():
            return failure(error.error_code, error.message)
    _log.warning("handler.failed", extra=_facts(call), exc_info=error)
    return failure("agent_error", _words(error), can_retry=call.handler.idempotent)


def _words(error: BaseException) -> str:
    """What the error says of itself, which is a handler's code too."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - the rest of the failure is still to be told
        return name


def _timed_out(call: Call) -> Outcome:
    return failure("timeout", "the handler used up its time", can_retry=call.handler.idempotent)


def _facts(call: Call) -> dict[str, object]:
    return {
        "agent_id": call.handler.agent_id,
        "request_id": call.view.request_id,
        "task_id": call.view.task_id,
        "capability": call.handler.capability,
        "attempt": call.view.attempt,
    }


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call back on the link's loop; a stuck handler may end after that loop has closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
