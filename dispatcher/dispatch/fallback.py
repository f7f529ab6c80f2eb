"""What becomes of a part that no capability is near enough for (pure; requirement C1)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from dispatcher.identifiers import Capability
from dispatcher.routing.decision import Decision, Outcome, Rejection

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
    )
