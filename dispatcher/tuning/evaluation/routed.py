"""What routing made of each request, and the figures that follow from it alone. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.metrics import Figure, auroc, bootstrapped, calibration_figure, f1, mean, share
from dispatcher.tuning.basis.rows import RequestRow

NO_REQUESTS = "no requests for one thing"
NO_OUTSIDE = "no requests out of scope"
NO_MESSAGES = "no messages of several wishes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedRow:
    """One request's ranking: the best three capabilities as the data set calls them, best first.

    `similarity` is the winner's, `scope_score` on the encoder's contrastive scale. `twins` are what the
    registry's calibration takes for the winner under another name.
    """

    row: RequestRow
    best: tuple[Capability, ...]
    similarity: float
    scope_score: float
    in_scope: bool
    twins: frozenset[Capability] = frozenset()

    @property
    def is_right(self) -> bool:
        """Whether the winner is one of those asked for, in scope or not."""
        return not self.row.wanted.isdisjoint(self.best[:1])

    @property
    def is_right_or_twin(self) -> bool:
        """Whether the winner or a twin of it is."""
        return self.is_right or not self.row.wanted.isdisjoint(self.twins)

    @property
    def is_near(self) -> bool:
        """Whether any of the best three is."""
        return not self.row.wanted.isdisjoint(self.best)


class Bare(NamedTuple):
    """A value whose interval can't be told, and how many observations it is of."""

    value: float
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures by name; what the data can't give has its reason in `left_out` instead.

    `bare` are values without an interval; `left_out` says why there is none.
    """

    found: Mapping[str, Figure] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    bare: Mapping[str, Bare] = field(default_factory=dict)

    def __or__(self, other: "Figures") -> "Figures":
        return Figures(
            found={**self.found, **other.found},
            left_out={**self.left_out, **other.left_out},
            bare={**self.bare, **other.bare},
        )


def missing(names: Iterable[str], reason: str) -> Figures:
    """Figures that are left out for one reason."""
    return Figures(left_out=dict.fromkeys(names, reason))


def ranked_figures(routed: Sequence[RoutedRow], chance: np.random.Generator) -> Figures:
    """Accuracy, refusal and calibration of requests for one thing, or for nothing that is registered."""
    inside, outside = split(routed)
    return _of_inside(inside) | _of_outside(inside, outside, chance) | _of_all(routed, inside, chance)


def split(routed: Iterable[RoutedRow]) -> tuple[list[RoutedRow], list[RoutedRow]]:
    """Those of requests inside, which ask for something registered, and those outside."""
    rows = list(routed)
    return [one for one in rows if one.row.wanted], [one for one in rows if not one.row.wanted]


def lost_share(inside: Sequence[RoutedRow]) -> Figure:
    """The share of requests inside, at least one, that routing refuses."""
    return share(sum(not one.in_scope for one in inside), len(inside))


def right_share(inside: Sequence[RoutedRow]) -> Figure:
    """The share of requests inside, at least one, whose winner is right."""
    return share(sum(one.is_right for one in inside), len(inside))


def served(intents: Iterable[Capability | None]) -> frozenset[Capability]:
    """The capabilities that get a task."""
    return frozenset(one for one in intents if one is not None)


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


def grouped(routed: Sequence[RoutedRow]) -> dict[str, dict[str, Any]]:
    """Accuracy and loss by language and by capability, each with its interval.

    A request for several capabilities counts with each of them.
    """
    inside, _ = split(routed)
    by_language: defaultdict[str, list[RoutedRow]] = defaultdict(list)
    by_agent: defaultdict[str, list[RoutedRow]] = defaultdict(list)
    for one in inside:
        by_language[one.row.language].append(one)
        for wanted in one.row.wanted:
            by_agent[wanted].append(one)
    return {"by_language": _described(by_language), "by_agent": _described(by_agent)}


def confusions(routed: Iterable[RoutedRow]) -> list[dict[str, Any]]:
    """Which wrong capability wins instead of which, most frequent first."""
    counts = Counter(
        (" + ".join(sorted(one.row.wanted)), one.best[0])
        for one in routed
        if one.row.wanted and one.best and not one.is_right
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"wanted": wanted, "won": won, "count": count} for (wanted, won), count in ordered]


def _of_inside(inside: Sequence[RoutedRow]) -> Figures:
    if not inside:
        return missing(("top1", "top1_or_twin", "top3", "in_scope_lost"), NO_REQUESTS)
    twin = share(sum(one.is_right_or_twin for one in inside), len(inside))
    near = share(sum(one.is_near for one in inside), len(inside))
    return Figures(
        found={
            "top1": right_share(inside),
            "top1_or_twin": twin,
            "top3": near,
            "in_scope_lost": lost_share(inside),
        }
    )


def _of_outside(
    inside: Sequence[RoutedRow], outside: Sequence[RoutedRow], chance: np.random.Generator
) -> Figures:
    if not outside:
        return missing(("oos_auroc", "oos_rejected"), NO_OUTSIDE)
    rejected = Figures(found={"oos_rejected": share(sum(not one.in_scope for one in outside), len(outside))})
    if not inside:
        return rejected | missing(("oos_auroc",), NO_REQUESTS)
    scores = [[one.scope_score for one in side] for side in (inside, outside)]
    return rejected | Figures(found={"oos_auroc": bootstrapped(auroc, chance, *scores)})


def _of_all(routed: Sequence[RoutedRow], inside: Sequence[RoutedRow], chance: np.random.Generator) -> Figures:
    if not inside:
        return missing(("ece", "ece_in_scope"), NO_REQUESTS)
    errors = {
        name: calibration_figure([(one.similarity, float(one.is_right)) for one in rows], chance)
        for name, rows in (("ece", routed), ("ece_in_scope", inside))
    }
    return Figures(found=errors)


def _described(groups: Mapping[str, Sequence[RoutedRow]]) -> dict[str, Any]:
    return {name: _group(rows) for name, rows in sorted(groups.items())}


def _group(rows: Sequence[RoutedRow]) -> dict[str, Any]:
    figures = {"top1": right_share(rows), "in_scope_lost": lost_share(rows)}
    return {
        "of": len(rows),
        **{name: round(one.value, 4) for name, one in figures.items()},
        "intervals": {name: [round(one.low, 4), round(one.high, 4)] for name, one in figures.items()},
    }
