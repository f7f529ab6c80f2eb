"""The database's time between two of its answers."""

from dispatcher.clock import Clock

STALE_S = 60.0
"""How long this process's own clock is trusted to run as the database's does."""
SLOW_S = 0.5
"""An answer that took longer says too little of the time."""
DRIFT = 1e-4
"""How much faster than the database's clock this process's own may run: crystals keep within it."""


class DatabaseTime:
    """What the database's clock shows, from its last answers on by this process's monotonic clock.

    Late by as much as the quickest of them took to arrive, never early: nothing ends before its time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_ms: float | None = None
        self._noted_at = 0.0

    def sending(self) -> float:
        """When a statement goes out whose answer will bring the time."""
        return self._clock.monotonic()

    def note(self, now_ms: int, sent_at: float) -> None:
        """Take the time that an answer brought.

        It may have been read any time since `sent_at`. What is known stays where that can explain
        the difference; a larger one is a clock that was set back.
        """
        arrived_at = self._clock.monotonic()
        if arrived_at - sent_at > SLOW_S:
            return
        ahead_ms = now_ms - arrived_at * 1000
        if self._ahead_ms is not None:
            known_ms = self._ahead_ms - (arrived_at - self._noted_at) * DRIFT * 1000
            if ahead_ms < known_ms <= ahead_ms + SLOW_S * 1000:
                ahead_ms = known_ms
        self._ahead_ms, self._noted_at = ahead_ms, arrived_at

    def forget(self) -> None:
        """Another server answers from now on, with a clock of its own."""
        self._ahead_ms = None

    def now_ms(self) -> int | None:
        """Milliseconds since the epoch; None where the last answer is too long ago."""
        monotonic = self._clock.monotonic()
        if self._ahead_ms is None or monotonic - self._noted_at > STALE_S:
            return None
        return int(self._ahead_ms + monotonic * 1000)
