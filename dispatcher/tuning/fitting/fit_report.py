"""What a fit is worth, beside self-calibration, on rows that neither of them was fitted on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dispatcher.routing.calibration import Calibration
from dispatcher.tuning.basis.metrics import Figure
from dispatcher.tuning.fitting.calibration_fit import (
    FOLDS,
    Ground,
    check_rows,
    cross_validate,
    figures,
    fit_rows,
    judge,
)
from dispatcher.tuning.fitting.calibration_rows import Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """A calibration of all rows, and figures by name: of self-calibration, and of what was fitted.

    Those of what was fitted are of `FOLDS` calibrations, each judged by the fifth of the rows it did not see.
    """

    calibration: Calibration
    figures: Mapping[str, tuple[Figure, Figure]]
    inside: int
    outside: int
    left_out: Mapping[str, int]
    seed: int

    @property
    def sentence(self) -> str:
        """What it was made of."""
        gone = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
        return (
            f"{self.inside} texts in scope and {self.outside} out of scope, {FOLDS} folds, "
            f"figures on texts not fitted on; left out: {gone or 'none'}"
        )

    @property
    def document(self) -> dict[str, Any]:
        """The report that is stored with the calibration."""
        return {
            "rows": {"inside": self.inside, "outside": self.outside, "left_out": dict(self.left_out)},
            "folds": FOLDS,
            "seed": self.seed,
            "figures": {
                name: {"self": _rounded(before), "fitted": _rounded(after)}
                for name, (before, after) in self.figures.items()
            },
        }


def measured(
    rows: Sequence[Scored],
    *,
    own: Calibration,
    ground: Ground,
    kind: str,
    seed: int,
    left_out: Mapping[str, int],
) -> FitReport:
    """Fit to the rows and measure; raises RequestError `too_few_rows`. `own` is self-calibration's."""
    check_rows(rows)
    inside = sum(bool(row.wanted) for row in rows)
    # The same chance for both, and rows in the same order: the columns are of the same resampled rows.
    before = figures(judge(rows, own, ground.similarity_floor), np.random.default_rng(seed))
    judged = cross_validate(rows, ground, kind, np.random.default_rng(seed))
    after = figures(judged, np.random.default_rng(seed))
    return FitReport(
        calibration=fit_rows(rows, ground, kind),
        figures={name: (before[name], after[name]) for name in after},
        inside=inside,
        outside=len(rows) - inside,
        left_out=left_out,
        seed=seed,
    )


def _rounded(figure: Figure) -> dict[str, float]:
    return {name: round(getattr(figure, name), 4) for name in ("value", "low", "high", "of")}
