"""What a floor on similarity accepts and refuses, and what similarity is worth as a probability. Pure.

A floor f on a probability p is the cheapest one where refusing a request that would have gone right
costs (1 - f) / f times what acting on a wrong one does: accept where p is at least 1 / (1 + cost).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dispatcher.routing.calibration import Calibration
from dispatcher.tuning.basis.metrics import Figure, any_share, bootstrapped, mean, share
from dispatcher.tuning.evaluation.routed import RoutedRow, split

FOLDS = 5
ANYTHING = -math.inf
"""A scope floor that refuses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One floor. `precision` is of what it accepts, None where that is nothing.

    `recall` is the share of requests inside that are accepted with the right winner, `refused` the share
    of those outside, each None where there are none; `cost` the mean cost of a request, in units of one
    wrong acceptance, 0 where nothing is asked.
    """

    floor: float
    precision: Figure | None
    recall: Figure | None
    refused: Figure | None
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorTrial:
    """What choosing the cheapest floor is worth, on rows that it was not chosen on.

    `floors` are those chosen without each fold, `cost` the mean cost of a request at the one chosen without
    its own fold, `saved` how much less that is than at the floor in force.
    """

    floors: tuple[float, ...]
    cost: float
    saved: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Requests whose winner has a similarity from `low` to below `high`."""

    low: float
    high: float
    predicted: float
    right: Figure


def threshold_curve(
    routed: Sequence[RoutedRow],
    floors: Iterable[float],
    *,
    own_cost: float,
    scope_floor: float = ANYTHING,
) -> list[Point]:
    """One point for each floor on similarity, beside the scope floor.

    `own_cost` is what refusing a request costs that would have gone right.
    """
    return [_point(routed, floor, scope_floor, own_cost) for floor in floors]


def try_choosing(
    routed: Sequence[RoutedRow],
    floors: Sequence[float],
    *,
    now: float,
    own_cost: float,
    chance: np.random.Generator,
) -> FloorTrial | None:
    """Choose the cheapest floor without a fifth of the rows and let that fifth judge it, five times.

    A floor that is measured on the rows it was chosen on looks better than it is. The interval is that of
    the mean over the rows, resampled. None of fewer than FOLDS rows.
    """
    if len(routed) < FOLDS:
        return None
    fold_of = chance.permutation(np.arange(len(routed)) % FOLDS).tolist()
    chosen = tuple(
        _cheapest_of([one for one, at in zip(routed, fold_of, strict=True) if at != fold], floors, own_cost)
        for fold in range(FOLDS)
    )
    paid = [costs([one], chosen[at], own_cost)[0] for one, at in zip(routed, fold_of, strict=True)]
    saved = [before - after for before, after in zip(costs(routed, now, own_cost), paid, strict=True)]
    most = max(own_cost, 1.0)
    return FloorTrial(
        floors=chosen, cost=mean(paid), saved=bootstrapped(mean, chance, saved, within=(-most, most))
    )


def costs(
    routed: Iterable[RoutedRow], floor: float, own_cost: float, scope_floor: float = ANYTHING
) -> list[float]:
    """What each request costs: 1 where it is accepted wrongly, `own_cost` where it is right and refused."""
    found = []
    for one in routed:
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


def score_at(calibration: Calibration, probability: float) -> float:
    """The contrastive score from which similarity is at least a probability in (0, 1).

    A registry without examples has no curve; similarity is 0 below its scope floor there, and 1 above.
    """
    curve = calibration.curve
    if curve is None:
        return calibration.floor
    return (math.log(probability / (1 - probability)) - curve.intercept) / curve.slope


def reliability(routed: Sequence[RoutedRow], bins: int) -> list[Bin]:
    """How often the winner was right where similarity said so; bins are equally wide, empty ones left out."""
    found = []
    for at in range(bins):
        inside = [one for one in routed if min(int(one.similarity * bins), bins - 1) == at]
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


def kinds(routed: Iterable[RoutedRow]) -> dict[str, list[RoutedRow]]:
    """Requests with the right winner, with a wrong one, and those out of scope."""
    inside, outside = split(routed)
    return {
        "right winner": [one for one in inside if one.is_right],
        "wrong winner": [one for one in inside if not one.is_right],
        "out of scope": outside,
    }


def _point(routed: Sequence[RoutedRow], floor: float, scope_floor: float, own_cost: float) -> Point:
    inside, outside = split(routed)
    accepted = [one for one in routed if _is_accepted(one, floor, scope_floor)]
    right = sum(one.is_right for one in accepted)
    strangers = sum(not one.row.wanted for one in accepted)
    return Point(
        floor=floor,
        precision=any_share(right, len(accepted)),
        recall=any_share(right, len(inside)),
        refused=any_share(len(outside) - strangers, len(outside)),
        cost=mean(costs(routed, floor, own_cost, scope_floor)) if routed else 0.0,
    )


def _cheapest_of(routed: Sequence[RoutedRow], floors: Sequence[float], own_cost: float) -> float:
    return cheapest(threshold_curve(routed, floors, own_cost=own_cost)).floor


def _is_accepted(one: RoutedRow, floor: float, scope_floor: float) -> bool:
    return one.similarity >= floor and one.scope_score >= scope_floor
