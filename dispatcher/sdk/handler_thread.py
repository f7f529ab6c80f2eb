"""Where handlers run: apart from the loop that talks to the dispatcher.

Async handlers share an event loop in a thread of its own, a blocking handler gets a thread
for its run. However long one blocks, heartbeats, acknowledgements and deadlines go on; only
native code that never lets go of the interpreter lock could stop them.
"""

import asyncio
import contextlib
import logging
import threading
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Self

from dispatcher.sdk.cancellation import Stop
from dispatcher.sdk.crossing import Crossing
from dispatcher.sdk.handler_call import Call, run_async, run_blocking, timed_out
from dispatcher.sdk.on_demand import new_loop
from dispatcher.sdk.outcome import CANCELLED, Outcome, failure

_JOIN_S = 1.0

_log = logging.getLogger(__name__)


class Run:
    """One run of a handler: what is told when its time is up, and how it really ends."""

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self._call = call
        self._loop = loop
        self.stop = Stop(call.view.cancelled)
        self.is_cancelled = False
        """Whether it was told to stop before it had ended; it is answered for as `cancelled` then."""
        self._outcome: asyncio.Future[Outcome] = loop.create_future()
        self._answer: asyncio.Future[None] = loop.create_future()

    @property
    def has_ended(self) -> bool:
        """Whether the handler is surely not at work any more."""
        return self._outcome.done()

    async def answer(self) -> Outcome:
        """The outcome within the call's time, `timeout` otherwise, whether or not the handler ended."""
        limit = self._call.seconds + self._call.grace_s
        timer = self._loop.call_later(limit, self._give_answer)
        try:
            await self._answer
        finally:
            timer.cancel()
        if self.is_cancelled:
            return CANCELLED
        if self.has_ended:
            return self._outcome.result()
        _log.warning("handler.stuck", extra=self._call.facts())
        self.stop.set()
        return timed_out(self._call)

    async def end_within(self, seconds: float) -> Outcome | None:
        """How the handler ended, None if it hasn't for so many seconds. Waiting never disturbs it."""
        await asyncio.wait([self._outcome], timeout=seconds)
        return self._outcome.result() if self._outcome.done() else None

    def cancel(self) -> None:
        """Tell the handler to stop; its answer is `cancelled`, after the call's grace at the latest."""
        if self.has_ended or self.is_cancelled:
            return
        self.is_cancelled = True
        self.stop.set()
        self._loop.call_later(self._call.grace_s, self._give_answer)

    def end(self, outcome: Outcome | None) -> None:
        """Take down how it ended; None when it was broken off, not by us."""
        if outcome is None:
            retry = self._call.handler.idempotent
            outcome = failure("agent_error", "the handler was cancelled", can_retry=retry)
        self._outcome.set_result(outcome)
        self._give_answer()

    def _give_answer(self) -> None:
        if not self._answer.done():
            self._answer.set_result(None)


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
        self._over: Crossing | None = None
        self._back: Crossing | None = None
        self._at_work: dict[Run, asyncio.Task[None]] = {}

    @property
    def running(self) -> int:
        """Places in use, stuck handlers included."""
        return self._taken

    async def __aenter__(self) -> Self:
        started: Future[None] = Future()
        self._back = Crossing(asyncio.get_running_loop())
        self._thread = threading.Thread(target=self._main, args=(started,), name="handlers", daemon=True)
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
        """Run the handler in a place taken before; the place is free again once the handler has ended.

        Raises RuntimeError, and the place is still the caller's, when no thread can be had.
        """
        run = Run(call, asyncio.get_running_loop())
        if self._over is None:
            raise RuntimeError("the handler thread is not running")
        if call.handler.signature.is_async:
            self._over.call(partial(self._begin, call, run))
        else:
            self._begin_blocking(call, run)
        return run

    async def run(self, call: Call) -> Outcome:
        """The answer of a handler that is started now, in a place taken before."""
        return await self.start(call).answer()

    def _begin(self, call: Call, run: Run) -> None:
        """On the handlers' loop."""
        work = asyncio.get_running_loop().create_task(self._work(call, run))
        self._at_work[run] = work
        work.add_done_callback(partial(self._worked, run))

    async def _work(self, call: Call, run: Run) -> None:
        """On the handlers' loop; tells its end itself, a turn of the loop before a callback would."""
        outcome = None
        try:
            outcome = await run_async(call, run.stop)
        finally:
            del self._at_work[run]
            self._ended(run, outcome)

    def _worked(self, run: Run, work: asyncio.Task[None]) -> None:
        """On the handlers' loop: tell of what was broken off before its first step."""
        if self._at_work.pop(run, None) is not None:
            self._ended(run, None)
        if not work.cancelled():
            work.exception()  # it is told as the run's end; nobody else asks for it

    def _begin_blocking(self, call: Call, run: Run) -> None:
        def work() -> None:
            self._ended(run, run_blocking(call))

        threading.Thread(target=work, name=f"handler-{call.handler.capability}", daemon=True).start()

    def _ended(self, run: Run, outcome: Outcome | None) -> None:
        """On the handlers' loop or thread; a stuck handler may end after the link's loop has closed."""
        if self._back is not None:
            with contextlib.suppress(RuntimeError):
                self._back.call(partial(self._end, run, outcome))

    def _end(self, run: Run, outcome: Outcome | None) -> None:
        """On the link's loop."""
        self.give_back()
        run.end(outcome)

    def _main(self, started: Future[None]) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = Crossing(self._loop)
        self._stop = asyncio.Event()
        started.set_result(None)
        await self._stop.wait()
