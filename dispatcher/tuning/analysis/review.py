"""One message's decisions as its caller reads them (`GET /v1/requests/{id}/decisions`), for people. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dispatcher.tuning.decisions.composite import FACTORS

ENOUGH = 0.10
"""How far ahead the winner should be in similarity; an analyst's rule of thumb, not the dispatcher's."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one part's decision calls for. `ahead` is in similarity, `second` the next capability or "-"."""

    part: int
    taker: str
    similarity: float
    second: str
    ahead: float
    action: str

    @property
    def is_fine(self) -> bool:
        """Whether nothing has to be done."""
        return self.action.startswith(("keep", "leave"))


def weighted(decision: Document) -> list[dict[str, object]]:
    """A row for each candidate: its score as the sum of its weighted factors, and why it was left out."""
    weights = decision["weights"]
    return [
        {
            "agent_id": one["agent_id"],
            "capability": one["capability"],
            "similarity": one["similarity"],
            **{share_name(weights, factor): weights[factor] * one[factor] for factor in FACTORS},
            "score": one["score"],
            "left out because": one["rejection"] or "chosen",
        }
        for one in decision["candidates"]
    ]


def share_name(weights: Document, factor: str) -> str:
    """A weighted factor's heading."""
    return f"{weights[factor]}·{factor}"


def heading(decision: Document) -> str:
    """One line of Markdown: the part's text, who took it, and why."""
    scope = f"scope {decision['scope_score']:.2f}, floor {decision['scope_floor']:.2f}"
    reason = f"{decision['outcome']} ({decision['reason']}; {scope})"
    return f"**Part {decision['position'] + 1}: {decision['text']}** → **{taker(decision)}**, {reason}"


def taker(decision: Document) -> str:
    """The chosen agent, or nobody."""
    return decision["agent_id"] or "nobody"


def review(decision: Document) -> Review:
    """How close it was, and what to do about it."""
    others = [one for one in decision["candidates"] if one["capability"] != decision["capability"]]
    nobody: Document = {"capability": "-", "similarity": 0.0}
    second: Document = max(others, key=lambda one: float(one["similarity"]), default=nobody)
    ahead = decision["similarity"] - second["similarity"]
    return Review(
        part=decision["position"] + 1,
        taker=taker(decision),
        similarity=decision["similarity"],
        second=second["capability"],
        ahead=ahead,
        action=_action(decision["outcome"], ahead),
    )


def conclusion(reviews: Sequence[Review]) -> str:
    """The decision over all parts, and the closest call among those that somebody took, as Markdown."""
    open_parts = sum(not one.is_fine for one in reviews)
    todo = f"work on {open_parts} of {len(reviews)} parts" if open_parts else "change nothing"
    closest = _closest(one for one in reviews if one.taker != "nobody")
    if closest is None:
        return f"**Decision: {todo}.**"
    behind = f"{closest.second} is {closest.ahead:.2f} behind"
    return f"**Decision: {todo}.** Watch part {closest.part}, the closest call: {behind}."


def _closest(reviews: Iterable[Review]) -> Review | None:
    return min(reviews, key=lambda one: one.ahead, default=None)


def _action(outcome: str, ahead: float) -> str:
    if outcome == "out_of_scope":
        return "leave it refused; an agent for it only if many ask"
    if outcome == "unavailable":
        return "look after the agents of this capability"
    return "keep" if ahead >= ENOUGH else "sharpen the examples of both capabilities"
