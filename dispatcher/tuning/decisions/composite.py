"""What the composite score does in stored decisions, and what it would do without the gate. Pure.

The gate: a text's best capability is settled by similarity alone, and only its agents compete by the
composite score. Without it every recorded candidate would.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from dispatcher.dispatch.fallback import refused_by_floors, went_to_fallback
from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection, Weights
from dispatcher.routing.score import composite
from dispatcher.tuning.basis.metrics import Figure, any_share

FACTORS = ("similarity", "success", "headroom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Of one decision's group, in [0, 1]: the chosen agent's load, the mean, and the least."""

    chosen: float
    mean: float
    least: float


def outscored(decisions: Iterable[Decision], weights: Weights) -> Figure | None:
    """Of decisions that chose an agent: how often one that is less similar has a better composite.

    None where no decision did. Only agents of other capabilities are compared; so it is load or success
    that would outweigh a match.
    """
    chosen = _selected(decisions)
    return any_share(sum(_is_outscored(one, weights) for one in chosen), len(chosen))


def admitted(decisions: Iterable[Decision], weights: Weights, floor: float) -> Figure | None:
    """Of decisions whose text the floors refused: how often some composite reaches the floor.

    A missing grant refuses too, and is not meant; what a person got instead is. Where the fallback capability
    got it, the candidates are not the text's. None where no decision is left.
    """
    refused = [one for one in decisions if refused_by_floors(one) and not went_to_fallback(one)]
    scores = [_composite(_best(one, weights), weights) for one in refused if one.candidates]
    return any_share(sum(score >= floor for score in scores), len(scores))


def spreads(decisions: Iterable[Decision], weights: Weights) -> dict[str, list[float]]:
    """By factor: how far its weighted share differs within each group of two able agents or more."""
    found: dict[str, list[float]] = {factor: [] for factor in FACTORS}
    for decision in _selected(decisions):
        group = _able(decision)
        if len(group) > 1:
            for factor in FACTORS:
                values = [getattr(one, factor) for one in group]
                found[factor].append(getattr(weights, factor) * (max(values) - min(values)))
    return found


def deciding(found: dict[str, list[float]]) -> dict[str, Figure | None]:
    """By factor: the share of groups in which it is what differs most; None where no group had a choice."""
    rows = list(zip(*(found[factor] for factor in FACTORS), strict=True))
    most = [FACTORS[row.index(max(row))] for row in rows]
    return {factor: any_share(most.count(factor), len(most)) for factor in FACTORS}


def group_loads(decisions: Iterable[Decision]) -> list[Loads]:
    """The loads in each decision's group of two able agents or more, the chosen one among them."""
    groups = [(one, _able(one)) for one in _selected(decisions)]
    return [
        Loads(
            chosen=1 - _chosen(decision).headroom,
            mean=fmean(1 - one.headroom for one in group),
            least=1 - max(one.headroom for one in group),
        )
        for decision, group in groups
        if len(group) > 1
    ]


def idle_score(weights: Weights, success: float) -> float:
    """The composite of an idle agent that has nothing to do with the text."""
    return composite(weights, 0.0, success, 1.0)


def _selected(decisions: Iterable[Decision]) -> list[Decision]:
    return [one for one in decisions if one.outcome is Outcome.SELECTED]


def _able(decision: Decision) -> Sequence[Candidate]:
    """The chosen agent and those that lost to it by score, or would have but for their load."""
    competed = {None, Rejection.OUTRANKED, Rejection.SATURATED, Rejection.BELOW_COMPOSITE_FLOOR}
    return [one for one in decision.candidates if one.rejection in competed]


def _chosen(decision: Decision) -> Candidate:
    return next(one for one in decision.candidates if one.rejection is None)


def _is_outscored(decision: Decision, weights: Weights) -> bool:
    own = _chosen(decision)
    score = max(_composite(one, weights) for one in decision.candidates if one.capability == own.capability)
    return any(
        _composite(one, weights) > score
        for one in decision.candidates
        if one.capability != own.capability and one.similarity < own.similarity
    )


def _best(decision: Decision, weights: Weights) -> Candidate:
    return max(decision.candidates, key=lambda one: _composite(one, weights))


def _composite(one: Candidate, weights: Weights) -> float:
    return composite(weights, one.similarity, one.success, one.headroom)
