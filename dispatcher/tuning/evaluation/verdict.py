"""What routing made of each request, and the figures that follow from it alone. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.metrics import Figure, auroc, bootstrapped, calibration_error, f1, mean, share
from dispatcher.tuning.basis.rows import RequestRow

NO_REQUESTS = "no requests for one thing"
NO_OUTSIDE = "no requests out of scope"
NO_MESSAGES = "no messages of several wishes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One request's ranking: the best three capabilities as the data set calls them, best first.

    `similarity` is the winner's, `scope_score` on the encoder's contrastive scale.
    """

    row: RequestRow
    best: tuple[Capability, ...]
    similarity: float
    scope_score: float
    in_scope: bool

    @property
    def is_right(self) -> bool:
        """Whether the winner is one of those asked for, in scope or not."""
        return not self.row.wanted.isdisjoint(self.best[:1])

    @property
    def is_near(self) -> bool:
        """Whether any of the best three is."""
        return not self.row.wanted.isdisjoint(self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures by name; what the data can't give has its reason in `left_out` instead."""

    found: Mapping[str, Figure] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: "Figures") -> "Figures":
        return Figures(found={**self.found, **other.found}, left_out={**self.left_out, **other.left_out})


def missing(names: Iterable[str], reason: str) -> Figures:
    """Figures that are left out for one reason."""
    return Figures(left_out=dict.fromkeys(names, reason))


def ranked_figures(verdicts: Sequence[Verdict], chance: np.random.Generator) -> Figures:
    """Accuracy, refusal and calibration of requests for one thing, or for nothing that is registered."""
    inside, outside = split(verdicts)
    return _of_inside(inside) | _of_outside(inside, outside, chance) | _of_all(verdicts, inside, chance)


def split(verdicts: Iterable[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Those of requests inside, which ask for something registered, and those outside."""
    rows = list(verdicts)
    return [one for one in rows if one.row.wanted], [one for one in rows if not one.row.wanted]


def lost_share(inside: Sequence[Verdict]) -> Figure:
    """The share of requests inside that routing refuses."""
    return share(sum(not one.in_scope for one in inside), len(inside))


def right_share(inside: Sequence[Verdict]) -> Figure:
    """The share of requests inside whose winner is right."""
    return share(sum(one.is_right for one in inside), len(inside))


def message_figures(
    rows: Sequence[RequestRow], found: Sequence[frozenset[Capability]], chance: np.random.Generator
) -> Figures:
    """How often exactly the wanted capabilities were found in a message, and the mean F1."""
    if not rows:
        return missing(("multi_exact", "multi_f1"), NO_MESSAGES)
    pairs = [(row.wanted, one) for row, one in zip(rows, found, strict=True)]
    exact = share(sum(wanted == one for wanted, one in pairs), len(pairs))
    each = [f1(one, wanted) for wanted, one in pairs]
    return Figures(found={"multi_exact": exact, "multi_f1": bootstrapped(mean, chance, each)})


def grouped(verdicts: Sequence[Verdict]) -> dict[str, dict[str, Any]]:
    """Accuracy and loss by language and by capability; a request for several counts with each of them."""
    inside, _ = split(verdicts)
    by_language: defaultdict[str, list[Verdict]] = defaultdict(list)
    by_agent: defaultdict[str, list[Verdict]] = defaultdict(list)
    for one in inside:
        by_language[one.row.language].append(one)
        for wanted in one.row.wanted:
            by_agent[wanted].append(one)
    return {"by_language": _described(by_language), "by_agent": _described(by_agent)}


def confusions(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Which wrong capability wins instead of which, most frequent first."""
    counts = Counter(
        (" + ".join(sorted(one.row.wanted)), one.best[0])
        for one in verdicts
        if one.row.wanted and one.best and not one.is_right
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"wanted": wanted, "won": won, "count": count} for (wanted, won), count in ordered]


def _of_inside(inside: Sequence[Verdict]) -> Figures:
    if not inside:
        return missing(("top1", "top3", "in_scope_lost"), NO_REQUESTS)
    near = share(sum(one.is_near for one in inside), len(inside))
    return Figures(found={"top1": right_share(inside), "top3": near, "in_scope_lost": lost_share(inside)})


def _of_outside(
    inside: Sequence[Verdict], outside: Sequence[Verdict], chance: np.random.Generator
) -> Figures:
    if not outside:
        return missing(("oos_auroc", "oos_rejected"), NO_OUTSIDE)
    rejected = Figures(found={"oos_rejected": share(sum(not one.in_scope for one in outside), len(outside))})
    if not inside:
        return rejected | missing(("oos_auroc",), NO_REQUESTS)
    scores = [[one.scope_score for one in side] for side in (inside, outside)]
    return rejected | Figures(found={"oos_auroc": bootstrapped(auroc, chance, *scores)})


def _of_all(verdicts: Sequence[Verdict], inside: Sequence[Verdict], chance: np.random.Generator) -> Figures:
    if not inside:
        return missing(("ece", "ece_in_scope"), NO_REQUESTS)
    errors = {
        name: bootstrapped(calibration_error, chance, [(one.similarity, float(one.is_right)) for one in rows])
        for name, rows in (("ece", verdicts), ("ece_in_scope", inside))
    }
    return Figures(found=errors)


def _described(groups: Mapping[str, Sequence[Verdict]]) -> dict[str, Any]:
    return {
        name: {
            "of": len(rows),
            "top1": round(right_share(rows).value, 4),
            "in_scope_lost": round(lost_share(rows).value, 4),
        }
        for name, rows in sorted(groups.items())
    }
