"""The time in which heartbeats are aged: it stands still while this replica can't hear any."""

from dispatcher.clock import Clock


class Hearing:
    """Seconds during which heartbeats could be heard.

    While the way to hear them is down silence says nothing about agents, and for `grace_s` after it
    is up again neither: they need time to be heard. Until it is told otherwise it hears.
    """

    def __init__(self, clock: Clock, grace_s: float) -> None:
        self._clock = clock
        self._grace_s = grace_s
        self._missed_s = 0.0
        self._still_since: float | None = None
        self._goes_on_at: float | None = None

    @property
    def is_down(self) -> bool:
        """Whether nothing can be heard now."""
        return self._still_since is not None and self._goes_on_at is None

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, without those that were missed."""
        if self._still_since is not None:
            self._go_on()
        now = self._clock.monotonic() if self._still_since is None else self._still_since
        return now - self._missed_s

    def set(self, *, is_up: bool) -> None:
        """The way to hear heartbeats is up, or down, from now on; told again, nothing changes."""
        now = self._clock.monotonic()
        self._go_on()
        if not is_up:
            self._still_since = now if self._still_since is None else self._still_since
            self._goes_on_at = None
        elif self._still_since is not None and self._goes_on_at is None:
            self._goes_on_at = now + self._grace_s

    def _go_on(self) -> None:
        """Let time run again once the grace is over."""
        if self._still_since is None or self._goes_on_at is None:
            return
        if self._clock.monotonic() >= self._goes_on_at:
            self._missed_s += self._goes_on_at - self._still_since
            self._still_since = self._goes_on_at = None
