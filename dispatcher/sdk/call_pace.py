"""How often work may start."""

from collections import deque

MOST = 10_000
"""Starts remembered; a faster pace than so many a second is kept as this one."""


class CallPace:
    """At most `per_s` starts in any second; of slower paces, one start in any `1 / per_s` seconds."""

    def __init__(self, per_s: float | None) -> None:
        rate = min(per_s, MOST) if per_s else 0.0
        count = max(int(rate), 1)
        self._window_s = count / rate if rate else 0.0
        self._starts: deque[float] = deque(maxlen=count)

    def has_room(self, now: float) -> bool:
        """Whether one may start; `now` is monotonic, in seconds."""
        is_full = len(self._starts) == self._starts.maxlen
        return not is_full or now - self._starts[0] >= self._window_s

    def note(self, now: float) -> None:
        """One started, whether or not it might."""
        self._starts.append(now)
