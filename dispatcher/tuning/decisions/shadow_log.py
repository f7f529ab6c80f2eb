"""How often a calibration in shadow would have decided otherwise, from stored decisions. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dispatcher.dispatch.fallback import BELOW_BAR, refused_by_floors, went_to_fallback
from dispatcher.identifiers import Capability, RequestId
from dispatcher.routing.decision import Decision, Outcome, ShadowDecision
from dispatcher.tuning.decisions.replay import StoredDecision


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
    capability got: that one's similarity is not the text's. 0 where there is nothing else. Of both kinds of
    differing decisions the first ones are kept.
    """

    number: int
    decisions: int
    since_ms: int
    until_ms: int
    similarity: float
    refused_count: int
    accepted_count: int
    refused: Sequence[Differing]
    """Accepted by what was in force, refused in shadow."""
    accepted: Sequence[Differing]
    """The other way round."""


def compare_shadows(stored: Iterable[StoredDecision], most: int) -> list[ShadowComparison]:
    """One comparison for each calibration that was in shadow, by number.

    Keeps at most `most` differing decisions of either kind for each.
    """
    found: dict[int, _Tally] = {}
    for one in stored:
        shadow = one.decision.shadow
        if shadow is not None and not _was_overruled(one.decision):
            found.setdefault(shadow.number, _Tally(most, one.recorded_ms, one.recorded_ms)).add(one, shadow)
    return [tally.comparison(number) for number, tally in sorted(found.items())]


@dataclass(slots=True)
class _Tally:
    """What is known of one calibration's decisions so far."""

    most: int
    since_ms: int
    until_ms: int
    decisions: int = 0
    compared: int = 0
    similarity: float = 0.0
    """The sum of the differences of `compared` decisions."""
    counts: Counter[bool] = field(default_factory=Counter)
    rows: dict[bool, list[Differing]] = field(default_factory=lambda: {True: [], False: []})
    """By whether what was in force had refused it."""

    def add(self, one: StoredDecision, shadow: ShadowDecision) -> None:
        self.decisions += 1
        self.since_ms, self.until_ms = (
            min(self.since_ms, one.recorded_ms),
            max(self.until_ms, one.recorded_ms),
        )
        if not went_to_fallback(one.decision):
            self.compared += 1
            self.similarity += shadow.similarity - one.decision.similarity
        was_refused = _was_refused(one.decision)
        if was_refused is (shadow.outcome is Outcome.OUT_OF_SCOPE):
            return
        self.counts[was_refused] += 1
        if len(self.rows[was_refused]) < self.most:
            self.rows[was_refused].append(_differing(one, shadow))

    def comparison(self, number: int) -> ShadowComparison:
        return ShadowComparison(
            number=number,
            decisions=self.decisions,
            since_ms=self.since_ms,
            until_ms=self.until_ms,
            similarity=self.similarity / self.compared if self.compared else 0.0,
            refused_count=self.counts[False],
            accepted_count=self.counts[True],
            refused=self.rows[False],
            accepted=self.rows[True],
        )


def _was_refused(decision: Decision) -> bool:
    """By the floors or for a missing grant: of the latter its shadow says out of scope as well."""
    is_refused = decision.outcome in {Outcome.OUT_OF_SCOPE, Outcome.HANDED_OFF}
    return is_refused or went_to_fallback(decision) or refused_by_floors(decision)


def _was_overruled(decision: Decision) -> bool:
    """Whether a bar above the floors refused it; decisions of today have no shadow then."""
    return decision.reason == BELOW_BAR and decision.scope_score >= decision.scope_floor


def _differing(one: StoredDecision, shadow: ShadowDecision) -> Differing:
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
