"""How often a calibration in shadow would have decided otherwise, from stored decisions. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from dispatcher.dispatch.fallback import BELOW_BAR, refused_by_floors, went_to_fallback
from dispatcher.identifiers import Capability, RequestId
from dispatcher.routing.decision import Decision, Outcome, ShadowDecision
from dispatcher.tuning.decisions.replay import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """A decision that would have been another one."""

    request_id: RequestId
    position: int
    recorded_ms: int
    text: str
    capability: Capability | None
    scope_score: float
    scope_floor: float
    outcome: Outcome
    shadow: ShadowDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowComparison:
    """One calibration in shadow beside what was in force then; times in ms since the epoch.

    `similarity` is the mean of its similarity minus the decision's own, without what the fallback
    capability got: that one's similarity is not the text's. 0 where there is nothing else.
    """

    number: int
    decisions: int
    since_ms: int
    until_ms: int
    similarity: float
    refused: Sequence[Differing]
    """Accepted by what was in force, refused in shadow."""
    accepted: Sequence[Differing]
    """The other way round."""


def compare_shadows(stored: Iterable[Stored]) -> list[ShadowComparison]:
    """One comparison for each calibration that was in shadow, by number."""
    found: dict[int, list[tuple[Stored, ShadowDecision]]] = {}
    for one in stored:
        if one.decision.shadow is not None and not _was_overruled(one.decision):
            found.setdefault(one.decision.shadow.number, []).append((one, one.decision.shadow))
    return [_compare(number, pairs) for number, pairs in sorted(found.items())]


def _compare(number: int, pairs: Sequence[tuple[Stored, ShadowDecision]]) -> ShadowComparison:
    times = [one.recorded_ms for one, _ in pairs]
    own = [(one.decision, shadow) for one, shadow in pairs if not went_to_fallback(one.decision)]
    differing = [
        (was_refused, _differing(one, shadow))
        for one, shadow in pairs
        if (was_refused := _was_refused(one.decision)) is not (shadow.outcome is Outcome.OUT_OF_SCOPE)
    ]
    return ShadowComparison(
        number=number,
        decisions=len(pairs),
        since_ms=min(times),
        until_ms=max(times),
        similarity=fmean(shadow.similarity - made.similarity for made, shadow in own) if own else 0.0,
        refused=[one for was_refused, one in differing if not was_refused],
        accepted=[one for was_refused, one in differing if was_refused],
    )


def _was_refused(decision: Decision) -> bool:
    """By the floors or for a missing grant: of the latter its shadow says out of scope as well."""
    is_refused = decision.outcome in {Outcome.OUT_OF_SCOPE, Outcome.HANDED_OFF}
    return is_refused or went_to_fallback(decision) or refused_by_floors(decision)


def _was_overruled(decision: Decision) -> bool:
    """Whether a bar above the floors refused it; decisions of today have no shadow then."""
    return decision.reason == BELOW_BAR and decision.scope_score >= decision.scope_floor


def _differing(one: Stored, shadow: ShadowDecision) -> Differing:
    decision = one.decision
    return Differing(
        request_id=one.request_id,
        position=one.position,
        recorded_ms=one.recorded_ms,
        text=decision.text,
        capability=decision.capability,
        scope_score=decision.scope_score,
        scope_floor=decision.scope_floor,
        outcome=decision.outcome,
        shadow=shadow,
    )
