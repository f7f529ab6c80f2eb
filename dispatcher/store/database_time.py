"""The database's time between two of its answers."""

from dispatcher.clock import Clock

STALE_S = 60.0
"""How long this process's own clock is trusted to run as the database's does."""


class DatabaseTime:
    """What the database's clock shows, from its last answer on by this process's monotonic clock.

    Late by as much as that answer took to arrive, never early: nothing ends before its time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms: float | None = None
        self._noted_at = 0.0

    def note(self, now_ms: int) -> None:
        """Take the time that an answer brought."""
        self._noted_at = self._clock.monotonic()
        self._ahead_ms = now_ms - self._noted_at * 1000

    def now_ms(self) -> int | None:
        """Milliseconds since the epoch; None where the last answer is too long ago."""
        monotonic = self._clock.monotonic()
        if self._ahead_ms is None or monotonic - self._noted_at > STALE_S:
            return None
        return int(self._ahead_ms + monotonic * 1000)
