"""What a floor on similarity accepts and refuses, and what similarity is worth as a probability. Pure.

A floor f on a probability p is the cheapest one where refusing a request that would have gone right
costs (1 - f) / f times what acting on a wrong one does: accept where p is at least 1 / (1 + cost).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dispatcher.routing.curve import Curve
from dispatcher.tuning.basis.metrics import Figure, bootstrapped, mean, share
from dispatcher.tuning.evaluation.verdict import Verdict, split

ANYTHING = -math.inf
"""A scope floor that refuses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One floor. `precision` is of what it accepts, None where that is nothing.

    `recall` is the share of requests inside that are accepted with the right winner; `refused` the share
    of those outside; `cost` the mean cost of a request, in units of one wrong acceptance.
    """

    floor: float
    precision: Figure | None
    recall: Figure
    refused: Figure
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Requests whose winner has a similarity from `low` to below `high`."""

    low: float
    high: float
    predicted: float
    right: Figure


def threshold_curve(
    verdicts: Sequence[Verdict],
    floors: Iterable[float],
    *,
    own_cost: float,
    scope_floor: float = ANYTHING,
) -> list[Point]:
    """One point for each floor on similarity, beside the scope floor; some rows must be inside, some outside.

    `own_cost` is what refusing a request costs that would have gone right.
    """
    return [_point(verdicts, floor, scope_floor, own_cost) for floor in floors]


def cost_difference(
    verdicts: Sequence[Verdict], floors: tuple[float, float], own_cost: float, chance: np.random.Generator
) -> Figure:
    """How much more a request costs at the first floor on similarity than at the second, on average."""
    first, second = (costs(verdicts, floor, own_cost) for floor in floors)
    return bootstrapped(mean, chance, [one - other for one, other in zip(first, second, strict=True)])


def costs(
    verdicts: Iterable[Verdict], floor: float, own_cost: float, scope_floor: float = ANYTHING
) -> list[float]:
    """What each request costs: 1 where it is accepted wrongly, `own_cost` where it is right and refused."""
    found = []
    for one in verdicts:
        is_accepted = _is_accepted(one, floor, scope_floor)
        if one.is_right:
            found.append(0.0 if is_accepted else own_cost)
        else:
            found.append(1.0 if is_accepted else 0.0)
    return found


def cheapest(points: Sequence[Point]) -> Point:
    """The point of least cost; of equal ones that in the middle, as ends are where a single row lies."""
    least = min(point.cost for point in points)
    equal = [point for point in points if point.cost <= least + 1e-12]
    return equal[len(equal) // 2]


def cheapest_floor(own_cost: float) -> float:
    """The floor on a probability that costs least, in [0, 1]."""
    return 1 / (1 + own_cost)


def cost_behind(floor: float) -> float:
    """The cost of refusing one's own request for which this floor, in (0, 1), is the cheapest."""
    return (1 - floor) / floor


def score_at(curve: Curve, probability: float) -> float:
    """The contrastive score at which a curve reaches a probability in (0, 1); its slope is above 0."""
    return (math.log(probability / (1 - probability)) - curve.intercept) / curve.slope


def reliability(verdicts: Sequence[Verdict], bins: int) -> list[Bin]:
    """How often the winner was right where similarity said so; bins are equally wide, empty ones left out."""
    found = []
    for at in range(bins):
        inside = [one for one in verdicts if min(int(one.similarity * bins), bins - 1) == at]
        if inside:
            found.append(
                Bin(
                    low=at / bins,
                    high=(at + 1) / bins,
                    predicted=mean([one.similarity for one in inside]),
                    right=share(sum(one.is_right for one in inside), len(inside)),
                )
            )
    return found


def kinds(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Requests with the right winner, with a wrong one, and those out of scope."""
    inside, outside = split(verdicts)
    return {
        "right winner": [one for one in inside if one.is_right],
        "wrong winner": [one for one in inside if not one.is_right],
        "out of scope": outside,
    }


def _point(verdicts: Sequence[Verdict], floor: float, scope_floor: float, own_cost: float) -> Point:
    inside, outside = split(verdicts)
    accepted = [one for one in verdicts if _is_accepted(one, floor, scope_floor)]
    right = sum(one.is_right for one in accepted)
    strangers = sum(not one.row.wanted for one in accepted)
    return Point(
        floor=floor,
        precision=share(right, len(accepted)) if accepted else None,
        recall=share(right, len(inside)),
        refused=share(len(outside) - strangers, len(outside)),
        cost=mean(costs(verdicts, floor, own_cost, scope_floor)),
    )


def _is_accepted(one: Verdict, floor: float, scope_floor: float) -> bool:
    return one.similarity >= floor and one.scope_score >= scope_floor
