"""What a calibration is worth on rows that it was not fitted on. Pure: chance is an argument."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dispatcher.tuning.basis.metrics import (
    DIFFERENCE,
    Figure,
    bootstrapped,
    calibration_error,
    calibration_figure,
    mean,
    share,
)
from dispatcher.tuning.fitting.calibration_fit import Judged
from dispatcher.tuning.fitting.calibration_rows import Scored


def top1_or_twin(rows: Sequence[Scored]) -> Figure:
    """The share of rows inside, at least one, with a right winner: no calibration changes it."""
    inside = [row for row in rows if row.wanted]
    return share(sum(row.is_right for row in inside), len(inside))


def figures(judged: Sequence[Judged], chance: np.random.Generator) -> Mapping[str, Figure]:
    """As `dispatcher eval` has them; rows of both sides are needed."""
    inside, outside = _by_side(judged)
    return {
        "in_scope_lost": share(sum(not one.accepted for one in inside), len(inside)),
        "oos_rejected": share(sum(not one.accepted for one in outside), len(outside)),
        "ece": calibration_figure([_forecast(one) for one in judged], chance),
    }


def differences(
    before: Sequence[Judged], after: Sequence[Judged], chance: np.random.Generator
) -> Mapping[str, Figure]:
    """The same figures of `after` minus those of `before`, judgements of the same rows in the same order.

    Rows are resampled with both judgements: the interval is that of the difference on the same texts,
    and much narrower than two intervals side by side suggest.
    """
    inside, outside = (
        [
            float(old.accepted) - float(new.accepted)
            for old, new in zip(before, after, strict=True)
            if bool(old.row.wanted) is side
        ]
        for side in (True, False)
    )
    both = [(*_forecast(old), *_forecast(new)) for old, new in zip(before, after, strict=True)]
    return {
        "in_scope_lost": bootstrapped(mean, chance, inside, within=DIFFERENCE),
        "oos_rejected": bootstrapped(mean, chance, outside, within=DIFFERENCE),
        "ece": bootstrapped(_error_difference, chance, both, within=DIFFERENCE),
    }


def _error_difference(rows: ArrayLike) -> float:
    """Of rows of probability and truth before, and probability and truth after."""
    table = np.asarray(rows, dtype=np.float64)
    return calibration_error(table[:, 2:]) - calibration_error(table[:, :2])


def _forecast(one: Judged) -> tuple[float, float]:
    return one.similarity, float(one.row.is_right)


def _by_side(judged: Sequence[Judged]) -> tuple[Sequence[Judged], Sequence[Judged]]:
    inside = [one for one in judged if one.row.wanted]
    return inside, [one for one in judged if not one.row.wanted]
