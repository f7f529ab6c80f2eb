"""Rules of the comparison: halves of the rows, floors, shares and ratios. Pure, and without numpy."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a router made of one row.

    `is_inside` says that the row wants something registered, `is_right` that what the router likes best is
    wanted, `confidence` how sure it is on a scale of its own.
    """

    is_inside: bool
    is_right: bool
    confidence: float


def fitting_half(labels: Sequence[Hashable]) -> tuple[bool, ...]:
    """For each row whether it is fitted on: every second one of its label, from the first."""
    seen: Counter[Hashable] = Counter()
    halves = []
    for label in labels:
        halves.append(seen[label] % 2 == 0)
        seen[label] += 1
    return tuple(halves)


def figures(choices: Sequence[Choice], floor: float) -> dict[str, float | None]:
    """Shares in [0, 1] of what is accepted from `floor` on; None where there are no such rows.

    `top1`: inside and right, accepted or not; `kept_right`: inside, right and accepted; `rejected`: outside
    and not accepted; `balanced`: the mean of these two.
    """
    inside = [one for one in choices if one.is_inside]
    outside = [one for one in choices if not one.is_inside]
    kept = _share(sum(one.is_right and one.confidence >= floor for one in inside), len(inside))
    rejected = _share(sum(one.confidence < floor for one in outside), len(outside))
    return {
        "top1": _share(sum(one.is_right for one in inside), len(inside)),
        "kept_right": kept,
        "rejected": rejected,
        "balanced": None if kept is None or rejected is None else round((kept + rejected) / 2, 4),
    }


def best_floor(choices: Sequence[Choice]) -> float:
    """The floor with the highest `balanced` share; the lowest one of several that are as good.

    Where no row is outside, that is the lowest confidence of all. Infinite where refusing everything is best.
    """
    gain = 1 / max(sum(one.is_inside for one in choices), 1)
    loss = 1 / max(sum(not one.is_inside for one in choices), 1)
    ordered = sorted(choices, key=_confidence, reverse=True)
    best, best_value, value = inf, 0.0, 0.0
    for confidence, ties in groupby(ordered, key=_confidence):
        value += sum(gain * one.is_right if one.is_inside else -loss for one in ties)
        if value >= best_value:
            best, best_value = confidence, value
    return best


def floor_that_rejects(choices: Sequence[Choice], share: float) -> float:
    """The lowest floor, among the confidences of the rows outside, that rejects `share` of them or more."""
    outside = [one for one in choices if not one.is_inside]
    floors = [*sorted({one.confidence for one in choices}), inf]
    return next(
        floor for floor in floors if sum(one.confidence < floor for one in outside) >= share * len(outside)
    )


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median over the rounds of each time."""
    return {name: round(median(one[name] for one in rounds), 4) for name in rounds[0]}


def median_ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """The median of the ratios within each round."""
    return round(median(one / other for one, other in zip(theirs, ours, strict=True)), 1)


def _confidence(one: Choice) -> float:
    return one.confidence


def _share(hits: int, of: int) -> float | None:
    return round(hits / of, 4) if of else None
