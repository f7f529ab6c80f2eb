"""What is made of many measured values."""

from collections.abc import Mapping, Sequence
from statistics import median

SHARES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile."""
    return {name: round(percentile(milliseconds, share), 4) for name, share in SHARES.items()}


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median over the rounds of every figure that all of them have."""
    if not rounds:
        return {}
    names = [name for name in rounds[0] if all(name in one for one in rounds)]
    return {name: round(median(one[name] for one in rounds), 4) for name in names}


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of the ratios of each round; None where there is nothing to compare with."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True) if other > 0]
    return round(median(ratios), 3) if ratios else None
