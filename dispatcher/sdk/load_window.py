"""What an instance saw in the last five minutes, for its heartbeats."""

from collections import deque
from collections.abc import Sequence

from dispatcher.protocol.frames import CapabilityLoad
from dispatcher.records import Struct

WINDOW_S = 300.0
MAX_CALLS = 4096
"""The newest calls counted; beyond, the window is shorter than five minutes."""


class FinishedCall(Struct, frozen=True, kw_only=True):
    """One run of a handler. Times are monotonic seconds."""

    capability: str
    finished_at: float
    seconds: float
    failed: bool


class LoadWindow:
    """Counts finished calls over `WINDOW_S` seconds, at most `MAX_CALLS` of them."""

    def __init__(self) -> None:
        self._calls: deque[FinishedCall] = deque(maxlen=MAX_CALLS)

    def add(self, call: FinishedCall) -> None:
        """Count a call; calls come in the order they finish."""
        self._calls.append(call)

    def by_capability(self, now: float) -> dict[str, CapabilityLoad]:
        """Requests, errors and 95 % quantile of the duration for each capability called."""
        calls = self._recent(now)
        names = sorted({call.capability for call in calls})
        return {name: summary([c for c in calls if c.capability == name]) for name in names}

    def total(self, now: float) -> CapabilityLoad:
        """The same over all capabilities."""
        return summary(self._recent(now))

    def _recent(self, now: float) -> Sequence[FinishedCall]:
        while self._calls and self._calls[0].finished_at < now - WINDOW_S:
            self._calls.popleft()
        return tuple(self._calls)


def summary(calls: Sequence[FinishedCall]) -> CapabilityLoad:
    """Counts and the nearest-rank 95 % quantile, None without calls."""
    if not calls:
        return CapabilityLoad()
    durations = sorted(call.seconds for call in calls)
    rank = -(-95 * len(durations) // 100)
    return CapabilityLoad(
        requests=len(calls),
        errors=sum(call.failed for call in calls),
        p95_ms=round(durations[rank - 1] * 1000, 3),
    )
