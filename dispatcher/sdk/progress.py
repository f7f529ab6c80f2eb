"""How far a handler is, on its way from the handler's thread to the dispatcher."""

import asyncio
import contextlib
import math
import threading
from collections.abc import Awaitable, Callable

from dispatcher.clock import Clock
from dispatcher.sdk.outcome import sendable

EVERY_S = 0.5
"""At most one frame in so many seconds; of what is reported in between the last one wins."""
MAX_NOTE = 500

Send = Callable[[float | None, str | None], Awaitable[object]]


class Progress:
    """Called by the handler, from any thread and as often as it likes; `send` runs on the link's loop."""

    def __init__(self, send: Send, group: asyncio.TaskGroup, clock: Clock) -> None:
        self._send: Send | None = send
        self._group = group
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._latest: tuple[float | None, str | None] | None = None
        self._sending: asyncio.Task[None] | None = None

    def __call__(self, fraction: float | None, note: str | None) -> None:
        """Report; returns at once."""
        report = (_fraction(fraction), None if note is None else sendable(note)[:MAX_NOTE])
        with self._lock:
            is_first = self._latest is None
            self._latest = report
        if is_first:
            with contextlib.suppress(RuntimeError):  # the link's loop has closed: nobody is left to tell
                self._loop.call_soon_threadsafe(self._begin)

    def close(self) -> None:
        """Send nothing more: the result says the rest. Holds on to no sender either, which holds it."""
        self._send = None
        if self._sending is not None:
            self._sending.cancel()

    def _begin(self) -> None:
        if self._send is not None and (self._sending is None or self._sending.done()):
            self._sending = self._group.create_task(self._send_on(self._send))

    async def _send_on(self, send: Send) -> None:
        while (report := self._take()) is not None:
            await send(*report)
            await self._clock.sleep(EVERY_S)

    def _take(self) -> tuple[float | None, str | None] | None:
        with self._lock:
            report, self._latest = self._latest, None
        return report


def _fraction(value: float | None) -> float | None:
    """Within [0, 1]; None for what is no number."""
    if value is None or math.isnan(value):
        return None
    return min(max(float(value), 0.0), 1.0)
