"""Which rate to try next, when the highest one is wanted that is still kept up with."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

STEP = 1.5
"""Between tries while only one side of the wanted rate is known."""
NEAR_ENOUGH = 1.06
MOST_TRIES = 12
LOWEST = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A rate per second that was offered, its 99th percentile, and whether it was kept up with."""

    rate: float
    p99_ms: float
    kept: bool


def next_rate(tries: Sequence[Try], first: float) -> float | None:
    """`first`, then up or down by STEP, then between; None when near enough or out of tries."""
    if not tries:
        return first
    kept, missed = highest_kept(tries), min((one.rate for one in tries if not one.kept), default=inf)
    if len(tries) >= MOST_TRIES or (kept is not None and missed / kept <= NEAR_ENOUGH):
        return None
    if kept is None:
        lower = missed / STEP
        return lower if lower >= LOWEST else None
    return kept * STEP if missed == inf else sqrt(kept * missed)


def highest_kept(tries: Sequence[Try]) -> float | None:
    """The highest rate that was kept up with; None when none was."""
    return max((one.rate for one in tries if one.kept), default=None)
