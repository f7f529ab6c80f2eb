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
    fit_rows,
    judge,
)
from dispatcher.tuning.fitting.calibration_rows import Scored
from dispatcher.tuning.fitting.fit_figures import differences, figures, top1_or_twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One figure of self-calibration and of what was fitted; `difference` is the latter minus the former."""

    own: Figure
    fitted: Figure
    difference: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What was fitted on, so that somebody else can look at it again.

    `kind` is `labelled` or `traffic`; `source` names a file by its name without the folder and its SHA-256,
    or the time of the feedback; `code` is `versions.code_version`.
    """

    kind: str
    source: Mapping[str, str]
    left_out: Mapping[str, int]
    seed: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """A calibration of all rows, and figures by name: of self-calibration, and of what was fitted.

    Those of what was fitted are of `FOLDS` calibrations, each judged by the fifth of the rows it did not see.
    `top1_or_twin` is the same with either.
    """

    calibration: Calibration
    top1_or_twin: Figure
    figures: Mapping[str, Beside]
    inside: int
    outside: int
    origin: Origin

    @property
    def sentence(self) -> str:
        """What it was made of."""
        gone = ", ".join(f"{count} {reason}" for reason, count in self.origin.left_out.items())
        return (
            f"{self.inside} texts in scope and {self.outside} out of scope, {FOLDS} folds, "
            f"figures on texts not fitted on; left out: {gone or 'none'}"
        )

    @property
    def document(self) -> dict[str, Any]:
        """The report that is stored with the calibration."""
        origin = self.origin
        return {
            "source": dict(origin.source),
            "code": origin.code,
            "rows": {"inside": self.inside, "outside": self.outside, "left_out": dict(origin.left_out)},
            "folds": FOLDS,
            "seed": origin.seed,
            "top1_or_twin": _rounded(self.top1_or_twin),
            "figures": {
                name: {
                    "self": _rounded(one.own),
                    "fitted": _rounded(one.fitted),
                    "difference": _rounded(one.difference),
                }
                for name, one in self.figures.items()
            },
        }


def measured(rows: Sequence[Scored], own: Calibration, ground: Ground, origin: Origin) -> FitReport:
    """Fit to the rows and measure; raises RequestError `too_few_rows`. `own` is self-calibration's."""
    check_rows(rows)
    inside = sum(bool(row.wanted) for row in rows)
    before = judge(rows, own, ground.similarity_floor)
    after = cross_validate(rows, ground, origin.kind, np.random.default_rng(origin.seed))
    # The same chance for all, and rows in the same order: the columns are of the same resampled rows.
    own_figures = figures(before, np.random.default_rng(origin.seed))
    fitted = figures(after, np.random.default_rng(origin.seed))
    paired = differences(before, after, np.random.default_rng(origin.seed))
    return FitReport(
        calibration=fit_rows(rows, ground, origin.kind),
        top1_or_twin=top1_or_twin(rows),
        figures={
            name: Beside(own=own_figures[name], fitted=fitted[name], difference=paired[name])
            for name in fitted
        },
        inside=inside,
        outside=len(rows) - inside,
        origin=origin,
    )


def _rounded(figure: Figure) -> dict[str, float]:
    return {name: round(getattr(figure, name), 4) for name in ("value", "low", "high", "of")}
