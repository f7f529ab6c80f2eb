"""Since when a frame that is read now can have been here.

A stopped process (SIGSTOP, a sleeping host) reads nothing; what arrived meanwhile lies in the
socket's buffer and seems to have come just now when it goes on. The pulse notices the gap.
"""

from typing import NoReturn

from dispatcher.clock import Clock

EVERY_S = 0.25
STOPPED_S = 1.0
"""A longer gap between two beats counts as having been stopped."""
SETTLED_S = 0.5
"""So long after a gap, what is read may still come from the time of the gap."""


class Pulse:
    """Beats while the event loop runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beat = clock.monotonic()
        self._gap = (self._beat, self._beat)

    async def run(self) -> NoReturn:
        """Beat until cancelled."""
        while True:
            self.beat()
            await self._clock.sleep(EVERY_S)

    def beat(self) -> None:
        """The loop runs now."""
        now = self._clock.monotonic()
        if now - self._beat > STOPPED_S:
            self._gap = (self._beat, now)
        self._beat = now

    def since(self, seen: float) -> float:
        """The earliest moment at which a frame that was seen at `seen` can have arrived (monotonic)."""
        if seen - self._beat > STOPPED_S:
            return self._beat
        stopped, went_on = self._gap
        if stopped < went_on and stopped < seen < went_on + SETTLED_S:
            return stopped
        return seen
