"""Whether handlers may start here: only while the instance surely holds its lease (I2).

A process that was stopped or cut off for long may have a successor with another inbox, which runs
what this one was sent. The dispatcher lets one in only after it has heard nothing for
`offline_after_ms`: who heard less than that ago that the lease holds has none. A stopped process's
monotonic clock goes on, so it finds the fence closed when it wakes up.
"""

import asyncio
from math import inf

from dispatcher.clock import Clock, SystemClock


class Fence:
    """Open until it is first told of a lease, for whoever needs none; from then on as that lease says."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._closes_at = inf
        self.is_lost = False
        """Whether the lease was another's when it was last asked about."""
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether a handler may start now; may be asked from any thread."""
        return self._clock.monotonic() < self._closes_at

    def confirm(self, asked_at: float, holds_s: float) -> None:
        """The lease held when it was asked about, at `asked_at` (monotonic); that is good for `holds_s`."""
        self._closes_at, self.is_lost = asked_at + holds_s, False
        if self.is_open:
            self._wanted.clear()
            self._change()

    def lose(self) -> None:
        """The lease is another's: closed until the next one is confirmed."""
        self._closes_at, self.is_lost = -inf, True
        self._change()

    async def opens(self, until: float) -> bool:
        """Wait for it to be open, to `until` (monotonic) at most; False at once where the lease is lost."""
        try:
            async with asyncio.timeout(until - self._clock.monotonic()):
                while not (self.is_open or self.is_lost):
                    self._wanted.set()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return self.is_open

    async def wanted(self, within_s: float) -> None:
        """Return as soon as somebody waits for it to open, or after so many seconds."""
        try:
            async with asyncio.timeout(within_s):
                await self._wanted.wait()
        except TimeoutError:
            pass

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
