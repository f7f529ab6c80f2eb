"""What becomes of a part that no capability is near enough for (pure; requirement C1)."""

from dataclasses import dataclass
from enum import StrEnum

from dispatcher.identifiers import Capability
from dispatcher.records import replace
from dispatcher.routing.decision import Advice, Decision, Outcome, Rejection

REASON = "fallback"
"""Of a decision for the capability that takes what nobody else can."""
BELOW_BAR = "below_semantic_bar"
"""Of a description that no capability fits well enough to act on."""


class FallbackKind(StrEnum):
    """Who gets what is out of scope."""

    HINT = "hint"
    """Nobody; the answer says so."""
    AGENT = "agent"
    """The agents of one capability."""
    PEOPLE = "people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """`capability` goes with AGENT; it is used like any other, so its callers need a grant for it."""

    kind: FallbackKind = FallbackKind.HINT
    capability: Capability | None = None


def handed_over(refused: Decision, described: str | None = None) -> Decision:
    """A decision for a person; `described` is the description that was ranked in the text's place."""
    if described is None:
        return replace(refused, outcome=Outcome.HANDED_OFF)
    below = refused.reason == Rejection.BELOW_SCOPE_FLOOR.value
    reason = BELOW_BAR if below else refused.reason
    return replace(refused, outcome=Outcome.HANDED_OFF, reason=reason, text=described)


def instead(refused: Decision, found: Decision) -> Decision:
    """The decision for the fallback capability, with the text's scope; not where its grant is missing."""
    if found.outcome is Outcome.OUT_OF_SCOPE:
        return refused
    reason = REASON if found.outcome is Outcome.SELECTED else found.reason
    return replace(
        found,
        reason=reason,
        scope_score=refused.scope_score,
        scope_floor=refused.scope_floor,
        advice=refused.advice,
        shadow=refused.shadow,
        winner=refused.winner,
        contrast=refused.contrast,
        ranked_text=refused.ranked_text,
        refused_for=refused.reason,
        own_similarity=refused.similarity,
        own_candidates=refused.candidates,
    )


def went_to_fallback(decision: Decision) -> bool:
    """Whether it is a decision for the fallback capability; its `similarity` is not the text's then."""
    # Decisions from before `refused_for` tell only where an agent took it.
    return decision.refused_for is not None or decision.reason == REASON


def refused_by_floors(decision: Decision) -> bool:
    """Whether the floors in force refused the text, whoever got it then.

    A missing grant and a bar above the floors refuse too, and are not meant. Decisions from before
    `refused_for` are judged by their scope alone where the fallback capability got them.
    """
    if decision.refused_for is not None:
        return decision.refused_for == Rejection.BELOW_SCOPE_FLOOR.value
    if decision.reason == Rejection.BELOW_SCOPE_FLOOR.value:
        return True
    is_elsewhere = decision.reason in {BELOW_BAR, REASON} or decision.outcome is Outcome.UNAVAILABLE
    is_below = decision.scope_score < decision.scope_floor and Advice.CHOICE not in decision.advice
    return is_elsewhere and is_below
