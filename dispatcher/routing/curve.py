"""From contrastive scores to a floor and to a probability; numpy only, no data of its own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

RIDGE = 0.01
"""Pull of the slope towards 0, per unit of weight; keeps the curve finite where the rows separate."""
NEWTON_STEPS = 50
OWN_COST = 2.0
"""What refusing one of the registry's own requests costs, accepting a stranger's being 1."""
FLOORS_TRIED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Weighted observations: a contrastive score, and whether it was right to act on it."""

    score: Doubles
    right: NDArray[np.bool_]
    weight: Doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """p = 1 / (1 + exp(-(slope·score + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, scores: Doubles) -> Doubles:
        """Probabilities in [0, 1]; a higher score never gives a lower one."""
        z = self.slope * np.asarray(scores, dtype=np.float64) + self.intercept
        # A call for a handful of scores is most calls, and `np.clip` costs four times as much there.
        return np.asarray(1.0 / (1.0 + np.exp(-np.minimum(np.maximum(z, -60.0), 60.0))))


def join(*parts: Rows) -> Rows:
    """All rows together."""
    return Rows(
        score=np.concatenate([part.score for part in parts]),
        right=np.concatenate([part.right for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
    )


def scope_floor(inside: Rows, outside: Rows, bandwidth: float) -> float:
    """The score from which to accept, so that the smoothed balanced accuracy is highest.

    Balanced accuracy counts the accepted share of the rows that are right inside, OWN_COST times,
    and the refused share of those outside. Each row counts as spread over `bandwidth` (the scale of a
    logistic kernel, in score): a registry of few examples has wide gaps between them, and their
    ends say little.
    """
    kept = inside.weight * inside.right
    score = np.concatenate([inside.score, outside.score])
    gain = np.concatenate([-OWN_COST * kept / max(kept.sum(), 1e-9), outside.weight / outside.weight.sum()])
    floors = np.linspace(score.min(), score.max(), FLOORS_TRIED)
    below = Curve(slope=1 / bandwidth, intercept=0.0)(floors[:, None] - score[None, :])
    return float(floors[np.argmax(below @ gain)])


def fit_curve(rows: Rows) -> Curve:
    """The regularised logistic curve, by Newton's method on standardised scores.

    The slope is never negative. One kind of rows only gives an almost flat curve on their side.
    """
    share = rows.weight / rows.weight.sum()
    mean = float((share * rows.score).sum())
    spread = float(np.sqrt((share * (rows.score - mean) ** 2).sum())) or 1.0
    x, y = (rows.score - mean) / spread, rows.right.astype(np.float64)
    slope, intercept = 1.0, 0.0
    for _ in range(NEWTON_STEPS):
        p = Curve(slope=slope, intercept=intercept)(x)
        steep = share * p * (1 - p)
        gradient = np.array(
            [(share * (p - y) * x).sum() + RIDGE * slope, (share * (p - y)).sum() + 1e-4 * intercept]
        )
        curvature = np.array(
            [[(steep * x * x).sum() + RIDGE, (steep * x).sum()], [(steep * x).sum(), steep.sum() + 1e-4]]
        )
        # Bounded, since a step where the curve is flat would overshoot.
        step = np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        slope, intercept = slope - float(step[0]), intercept - float(step[1])
    slope = max(slope, 0.0)
    return Curve(slope=slope / spread, intercept=intercept - slope * mean / spread)


def weighted_quantile(values: Doubles, weights: Doubles, share: float) -> float:
    """The smallest value below or at which at least `share` of the weight lies."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    at = np.searchsorted(total, share * total[-1] - 1e-12)
    return float(values[order][min(int(at), len(values) - 1)])
