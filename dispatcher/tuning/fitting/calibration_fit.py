"""Floor, curve and floors of single capabilities from judged rows, and what they are worth on other rows.

Pure: chance is an argument. Nothing is ever measured on rows that it was fitted on: each row is judged by
a calibration that was fitted on the other folds.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import (
    OUTSIDE_PER_INSIDE,
    REFERENCE_WEIGHT,
    SMOOTHING,
    Calibration,
    Observed,
    heights,
    placed,
)
from dispatcher.routing.curve import Rows, fit_curve, join, scope_floor
from dispatcher.routing.reference import Reference, inside_rows, outside_rows
from dispatcher.tuning.fitting.calibration_rows import Scored

FOLDS = 5
LEAST = 30
"""Rows inside and rows outside that a fit needs; of fewer, intervals say nothing."""
LEAST_OF_ONE = 25
"""Rows inside and rows outside that a capability needs for a floor of its own."""
LEAST_IN_FOLDS = 20
"""The same for each fold's fit: what is left of `LEAST_OF_ONE`, so that no floor goes unmeasured."""
COMMON_WEIGHT = 50.0
"""The common floor weighs as much as so many rows against a capability's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a fit stands on: the registry's own rows and the reference rows, which weigh as a prior does."""

    encoder_id: str
    registry_version: int
    capabilities: int
    observed: Observed
    reference: Reference | None
    similarity_floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a calibration made of a row that it had not seen."""

    row: Scored
    accepted: bool
    similarity: float


def check_rows(rows: Sequence[Scored]) -> None:
    """Raise RequestError `too_few_rows` where there is too little to fit on."""
    inside = sum(bool(row.wanted) for row in rows)
    outside = len(rows) - inside
    if min(inside, outside) < LEAST:
        raise RequestError(
            f"a fit needs {LEAST} texts in scope and {LEAST} out of scope; there are {inside} and {outside}",
            code="too_few_rows",
        )


def fit_rows(
    rows: Sequence[Scored], ground: Ground, kind: str, least_of_one: int = LEAST_OF_ONE
) -> Calibration:
    """A calibration of these rows; both sides are needed. `kind` is `labelled` or `traffic`."""
    inside, outside = _sides(rows)
    prior_inside, prior_outside = _prior(ground)
    bandwidth = SMOOTHING * heights(ground.observed)[1]
    all_inside, all_outside = join(inside, *prior_inside), join(outside, *prior_outside)
    floor = scope_floor(all_inside, all_outside, bandwidth)
    lighter = replace(all_outside, weight=OUTSIDE_PER_INSIDE * all_outside.weight)
    return Calibration(
        encoder_id=ground.encoder_id,
        registry_version=ground.registry_version,
        kind=kind,
        floor=floor,
        curve=fit_curve(join(all_inside, lighter)),
        floors=_floors(rows, least_of_one, floor, bandwidth),
    )


def cross_validate(
    rows: Sequence[Scored], ground: Ground, kind: str, chance: np.random.Generator
) -> list[Judged]:
    """Every row in its place, judged by what was fitted on the other four fifths.

    Each capability is in all fifths, and has a floor of its own there if it has one in a fit of all rows.
    """
    judged: dict[int, Judged] = {}
    fold_of = _folds(rows, chance)
    for fold in range(FOLDS):
        seen = [row for row, at in zip(rows, fold_of, strict=True) if at != fold]
        places = [place for place, at in enumerate(fold_of) if at == fold]
        fitted = fit_rows(seen, ground, kind, LEAST_IN_FOLDS)
        held_out = judge([rows[place] for place in places], fitted, ground.similarity_floor)
        judged |= zip(places, held_out, strict=True)
    return [judged[place] for place in range(len(rows))]


def judge(rows: Sequence[Scored], calibration: Calibration, similarity_floor: float) -> list[Judged]:
    """What a calibration makes of rows that it was not fitted on."""
    if not rows:
        return []
    scores = np.array([row.score for row in rows])
    accepted = calibration.accepts(scores, similarity_floor, [row.winner for row in rows]).tolist()
    similarities = calibration.similarity(scores).tolist()
    return [
        Judged(row=row, accepted=verdict, similarity=similarity)
        for row, verdict, similarity in zip(rows, accepted, similarities, strict=True)
    ]


def _sides(rows: Sequence[Scored]) -> tuple[Rows, Rows]:
    """Rows inside weigh 1 each, those outside as much together."""
    inside = [row for row in rows if row.wanted]
    outside = [row for row in rows if not row.wanted]
    return _weighed(inside, 1.0), _weighed(outside, len(inside) / max(len(outside), 1))


def _weighed(rows: Sequence[Scored], weight: float) -> Rows:
    return Rows(
        score=np.array([row.score for row in rows], dtype=np.float64),
        right=np.array([row.is_right for row in rows], dtype=np.bool_),
        weight=np.full(len(rows), weight),
    )


def _prior(ground: Ground) -> tuple[Sequence[Rows], Sequence[Rows]]:
    """The reference rows at the registry's heights; without any the registry's own, at the same weight."""
    if ground.reference is None:
        own = [] if ground.observed.inside is None else [_weighing(ground.observed.inside)]
        return own, [_weighing(ground.observed.outside)]
    size, place = ground.reference.nearest(ground.capabilities), heights(ground.observed)
    return (
        [placed(inside_rows(size, REFERENCE_WEIGHT), place)],
        [placed(outside_rows(size, REFERENCE_WEIGHT), place)],
    )


def _weighing(rows: Rows) -> Rows:
    return replace(rows, weight=rows.weight * (REFERENCE_WEIGHT / rows.weight.sum()))


def _floors(
    rows: Sequence[Scored], least: int, common: float, bandwidth: float
) -> Mapping[Capability, float]:
    """Floors of capabilities that won enough texts of both kinds, drawn towards the common one."""
    won: defaultdict[Capability, list[Scored]] = defaultdict(list)
    for row in rows:
        if row.winner is not None and (row.is_right or not row.wanted):
            won[row.winner].append(row)
    floors = {}
    for capability, own in sorted(won.items()):
        right = sum(row.is_right for row in own)
        fewer = min(right, len(own) - right)
        if fewer >= least:
            part = fewer / (fewer + COMMON_WEIGHT)
            floors[capability] = part * scope_floor(*_sides(own), bandwidth) + (1 - part) * common
    return floors


def _folds(rows: Sequence[Scored], chance: np.random.Generator) -> list[int]:
    """Which fold each row is in: the rows of each capability, and those of none, are spread over all."""
    strata: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        strata[_stratum(row)].append(place)
    fold_of = [0] * len(rows)
    turn = 0
    # In order, so that what is wanted of one capability comes in one go, right winner or not.
    for _, places in sorted(strata.items()):
        for place in chance.permutation(places).tolist():
            fold_of[place] = turn % FOLDS
            turn += 1
    return fold_of


def _stratum(row: Scored) -> tuple[str, ...]:
    """Right rows and those out of scope by winner: its own floor needs both sides in every fold alike."""
    if row.is_right:
        return "inside", row.winner or "", "right"
    if row.wanted:
        return "inside", min(row.wanted), "wrong"
    return "outside", row.winner or ""
