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
from dispatcher.sdk.outcome import Outcome, failure, outcome_of
from dispatcher.sdk.reply import BusinessError, NeedsInput
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

    async def run(self, call: Call) -> Outcome:
        """Run the handler in a place taken before; the place is free again once the handler has ended."""
        link_loop = asyncio.get_running_loop()
        try:
            future = self._start(call)
        except RuntimeError:
            self.give_back()
            raise
        future.add_done_callback(lambda _: _tell(link_loop, self.give_back))
        await asyncio.wait([asyncio.wrap_future(future)], timeout=call.seconds + call.grace_s)
        if not future.done():
            _log.warning("handler.stuck", extra=_facts(call))
            return _timed_out(call)
        if future.cancelled():
            return failure("agent_error", "the handler was cancelled", can_retry=call.handler.idempotent)
        return future.result()

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
            return outcome_of(await call.handler.function(*arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise anything
        return _timed_out(call) if limit.expired() else _failed(call, error)


def _run_blocking(call: Call, future: Future[Outcome]) -> None:
    try:
        arguments = call.handler.arguments(call.fields, call.view)
        outcome = outcome_of(call.handler.function(*arguments))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise anything
        outcome = _failed(call, error)
    future.set_result(outcome)


def _failed(call: Call, error: BaseException) -> Outcome:
    match error:
        case NeedsInput() | BusinessError():
            return outcome_of(error)
        case RequestError():
            return failure(error.error_code, error.message)
    _log.warning("handler.failed", extra=_facts(call), exc_info=error)
    return failure("agent_error", f"{type(error).__name__}: {error}", can_retry=call.handler.idempotent)


def _timed_out(call: Call) -> Outcome:
    return failure("timeout", "the handler used up its time", can_retry=call.handler.idempotent)


def _facts(call: Call) -> dict[str, object]:
    return {
        "request_id": call.view.request_id,
        "task_id": call.view.task_id,
        "capability": call.handler.capability,
        "attempt": call.view.attempt,
    }


def _tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Call back on the link's loop; a stuck handler may end after that loop has closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
