"""What a score means in this registry: the scope floor and the curve to p(right capability).

The contrastive score of a text is its best cosine minus the mean of its nearest background
cosines. Rows inside are the registry's left-out examples, rows outside the background utterances, and
both get reference rows that weigh as much as 50 examples. For the floor inside and outside weigh the
same; for the curve three requests in eight are out of scope.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.routing.background import contrast_of, contrast_of_background
from dispatcher.routing.curve import Curve, Doubles, Rows, fit_curve, join, scope_floor, weighted_quantile
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.leave_one_out import LeftOut, Registered, leave_one_out
from dispatcher.routing.reference import Reference, inside_rows, outside_rows

REFERENCE_WEIGHT = 50.0
"""Reference rows weigh as much as so many registered examples."""
OUTSIDE_PER_INSIDE = 0.6
"""For the curve: requests out of scope per request in scope."""
QUANTILE_WITHOUT_EXAMPLES = 0.95
SMOOTHING = 0.075
"""Of the floor's search, as a share of the distance between background and median example."""
LEAST_SPAN = 0.05
"""Of a registry's heights, in cosine; keeps a registry of nonsense from stretching the reference rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Valid for one encoder and the registry version it was made from.

    `kind` is `self` where the registry's examples outweigh the reference rows, `reference` where
    they don't, `uncalibrated` without examples: then p is 1 from the floor on and 0 below. `labelled`
    and `traffic` were fitted on rows that people judged. `floors` are of capabilities with a scope floor
    of their own; `floor` is that of all others.
    """

    encoder_id: str
    registry_version: int
    kind: str
    floor: float
    curve: Curve | None
    twins: frozenset[tuple[Capability, Capability]] = frozenset()
    floors: Mapping[Capability, float] = field(default_factory=dict)

    def floor_of(self, winner: Capability | None) -> float:
        """The scope floor of a text whose best capability this is."""
        return self.floor if winner is None else self.floors.get(winner, self.floor)

    def similarity_of(self, score: float) -> float:
        """`similarity` of one score, in a fraction of the time."""
        if self.curve is None:
            return float(score >= self.floor)
        z = self.curve.slope * score + self.curve.intercept
        return 1.0 / (1.0 + math.exp(-min(max(z, -60.0), 60.0)))

    def similarity(self, scores: Doubles) -> Doubles:
        """p(right capability) in [0, 1] for contrastive scores."""
        if self.curve is None:
            return (np.asarray(scores) >= self.floor).astype(np.float64)
        return self.curve(scores)

    def accepts(
        self, scores: Doubles, similarity_floor: float, winners: Sequence[Capability | None] | None = None
    ) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Whether each score is in scope: at or above the scope floor and the floor on similarity.

        Without `winners`, the best capability of each text, the common floor is every text's.
        """
        own = None if winners is None else np.array([self.floor_of(one) for one in winners])
        accepted: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            np.asarray(scores) >= (self.floor if own is None else own)
        ) & (self.similarity(scores) >= similarity_floor)
        return accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The registry's rows inside and outside, before reference rows are added."""

    inside: Rows | None
    outside: Rows
    left_out: LeftOut | None


def observe(registry: Registered, background: Vectors) -> Observed:
    """Score the registry's left-out examples and the background against what is registered."""
    cosines = registry.cosines(background)
    scores = (cosines.max(axis=1) - contrast_of_background(background)).astype(np.float64)
    left_out = leave_one_out(registry)
    examples = 0 if left_out is None else len(left_out.best)
    outside = Rows(
        score=scores,
        right=np.zeros(len(scores), dtype=np.bool_),
        weight=np.full(len(scores), max(examples, 1) / len(scores)),
    )
    if left_out is None:
        return Observed(inside=None, outside=outside, left_out=None)
    inside = Rows(
        score=(left_out.best - contrast_of(left_out.vectors, background)).astype(np.float64),
        right=left_out.right,
        weight=left_out.weight.astype(np.float64),
    )
    return Observed(inside=inside, outside=outside, left_out=left_out)


def calibrate(
    observed: Observed, reference: Reference | None, capabilities: int, made_of: tuple[str, int]
) -> Calibration:
    """Fit floor and curve; `made_of` is the encoder id and the registry version."""
    encoder_id, version = made_of
    empty = Calibration(
        encoder_id=encoder_id,
        registry_version=version,
        kind="uncalibrated",
        floor=weighted_quantile(observed.outside.score, observed.outside.weight, QUANTILE_WITHOUT_EXAMPLES),
        curve=None,
    )
    if observed.inside is None or observed.left_out is None:
        return empty
    inside, outside = observed.inside, observed.outside
    is_own = reference is None or len(inside.score) >= REFERENCE_WEIGHT
    place = heights(observed)
    if reference is not None:
        size = reference.nearest(capabilities)
        inside = join(inside, placed(inside_rows(size, REFERENCE_WEIGHT), place))
        outside = join(outside, placed(outside_rows(size, REFERENCE_WEIGHT), place))
    lighter = replace(outside, weight=OUTSIDE_PER_INSIDE * outside.weight)
    return replace(
        empty,
        kind="self" if is_own else "reference",
        floor=scope_floor(inside, outside, SMOOTHING * place[1]),
        curve=fit_curve(join(inside, lighter)),
        twins=observed.left_out.twins,
    )


def heights(observed: Observed) -> tuple[float, float]:
    """Where height 0 lies and how long 1 is: mean background score, distance to the median example."""
    zero = float(observed.outside.score.mean())
    if observed.inside is None:
        return zero, LEAST_SPAN
    median = weighted_quantile(observed.inside.score, observed.inside.weight, 0.5)
    return zero, max(median - zero, LEAST_SPAN)


def refused_share(calibration: Calibration, observed: Observed, similarity_floor: float) -> float:
    """The weighted share of the registered examples that the calibration refuses."""
    if observed.inside is None:
        return 0.0
    refused = ~calibration.accepts(observed.inside.score, similarity_floor)
    return float((refused * observed.inside.weight).sum() / observed.inside.weight.sum())


def placed(rows: Rows, place: tuple[float, float]) -> Rows:
    """Rows on the scale of heights as contrastive scores; `place` is what `heights` gives."""
    zero, span = place
    return replace(rows, score=zero + span * rows.score)
