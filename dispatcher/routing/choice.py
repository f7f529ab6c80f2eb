"""From a ranking to a decision: scope, then the funnel, then the policy. In memory, no waiting."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.candidates import Contender, Contenders, Similarity, in_order
from dispatcher.routing.decision import Candidate, Decision, Outcome, Rejection
from dispatcher.routing.eligibility import Demand, rejections
from dispatcher.routing.policy import highest_score
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.slots import Key

FUNNEL = tuple(Rejection)
"""The reasons in the funnel's order."""


class Allows(Protocol):
    """Whether the caller was granted a capability."""

    def __call__(self, capability: Capability, /) -> bool:
        """By exact name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One intent to be decided.

    `capability` None asks for the ranking's winner, subject to the floors. A given one was decided
    before, by the caller or an earlier ranking: it skips the floors and has `similarity`, in [0, 1],
    wherever the ranking doesn't know better. `payload_bytes` is the size of the task frame; agents
    in `tried` are chosen only where no other can be. `now` is aware, in UTC.
    """

    text: str
    capability: Capability | None
    similarity: float
    allows: Allows
    environment: str
    payload_bytes: int
    tried: frozenset[AgentId]
    now: datetime

    @property
    def demand(self) -> Demand:
        """What the funnel needs of it."""
        return Demand(
            allows=self.allows,
            environment=self.environment,
            payload_bytes=self.payload_bytes,
            tried=self.tried,
            now=self.now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of the intent; `rejections` has every looked-at agent but the chosen one."""

    outcome: Outcome
    reason: str
    chosen: Contender | None
    rejections: Mapping[Key, Rejection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What a decision says about where it was made."""

    similarity: Similarity
    keys: int
    """Agents and capabilities registered, pair by pair."""
    encoder_id: str
    version: int
    calibration: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Makes decisions; deterministic, whatever the order in which agents are given."""

    contenders: Contenders
    rules: RoutingRules

    def decide(self, query: Query, ranking: Ranking | None, registry: Registry) -> Decision:
        """The decision for one intent."""
        capability = query.capability or _winner(ranking)
        if capability is None:
            nothing = Verdict(
                outcome=Outcome.OUT_OF_SCOPE, reason="nothing_registered", chosen=None, rejections={}
            )
            return self._decision(query, ranking, registry, (None, nothing, [], []))
        admitted = self._admitted(capability, ranking)
        group = self._group(query, (capability, admitted), ranking, registry)
        verdict = self._verdict(query, ranking, capability, group)
        others = self._neighbours(capability, admitted, ranking, registry)
        return self._decision(query, ranking, registry, (capability, verdict, group, others))

    def _admitted(self, capability: Capability, ranking: Ranking | None) -> list[CapabilityScore]:
        """The capability's entry in the ranking, and those within the margin of it."""
        entries = ranking.capabilities if ranking is not None else ()
        entry = next((one for one in entries if one.capability == capability), None)
        if entry is None or ranking is None:
            return []
        margin = self.rules.margin * ranking.scale
        near = [one for one in entries if one is not entry and 0 <= entry.score - one.score <= margin]
        return [entry, *(near if margin > 0 else [])]

    def _group(
        self,
        query: Query,
        competing: tuple[Capability, Sequence[CapabilityScore]],
        ranking: Ranking | None,
        registry: Registry,
    ) -> list[Contender]:
        capability, admitted = competing
        if not admitted or ranking is None:
            return self.contenders.group(capability, query.similarity)
        return [
            one
            for entry in admitted
            for one in self.contenders.ranked_group(entry, ranking, registry.similarity)
        ]

    def _neighbours(
        self,
        capability: Capability,
        admitted: Sequence[CapabilityScore],
        ranking: Ranking | None,
        registry: Registry,
    ) -> list[Contender]:
        if ranking is None:
            return []
        competing = {capability, *(entry.capability for entry in admitted)}
        others = [entry for entry in ranking.capabilities if entry.capability not in competing]
        return self.contenders.neighbours(others, ranking, registry.similarity)

    def _verdict(
        self, query: Query, ranking: Ranking | None, capability: Capability, group: Sequence[Contender]
    ) -> Verdict:
        if query.capability is None and ranking is not None and not ranking.in_scope:
            return _refused(Outcome.OUT_OF_SCOPE, Rejection.BELOW_SCOPE_FLOOR, group)
        if not query.allows(capability):
            return _refused(Outcome.OUT_OF_SCOPE, Rejection.NOT_GRANTED, group)
        if not any(one.key.capability == capability for one in group):
            return Verdict(
                outcome=Outcome.UNAVAILABLE, reason="unknown_capability", chosen=None, rejections={}
            )
        return self._pick(query, group)

    def _pick(self, query: Query, group: Sequence[Contender]) -> Verdict:
        left_out = dict(rejections((one.prospect for one in group), query.demand, self.rules.saturation))
        eligible = [one for one in group if one.key not in left_out]
        if not eligible:
            reason = max(left_out.values(), key=FUNNEL.index)
            return Verdict(outcome=Outcome.UNAVAILABLE, reason=reason.value, chosen=None, rejections=left_out)
        is_saturated = all(one.prospect.status.load >= self.rules.saturation for one in eligible)
        floor = 0.0 if is_saturated else self.rules.composite_floor
        found = highest_score([one.scored for one in eligible], floor)
        if found is None:
            left_out |= dict.fromkeys((one.key for one in eligible), Rejection.BELOW_COMPOSITE_FLOOR)
            reason = Rejection.BELOW_COMPOSITE_FLOOR
            return Verdict(outcome=Outcome.UNAVAILABLE, reason=reason.value, chosen=None, rejections=left_out)
        for one in eligible:
            below = one.score < floor
            left_out[one.key] = Rejection.BELOW_COMPOSITE_FLOOR if below else Rejection.OUTRANKED
        del left_out[found.key]
        chosen = next(one for one in eligible if one.key == found.key)
        reason_given = "least_bad_of_saturated" if is_saturated else "highest_score"
        return Verdict(outcome=Outcome.SELECTED, reason=reason_given, chosen=chosen, rejections=left_out)

    def _decision(
        self,
        query: Query,
        ranking: Ranking | None,
        registry: Registry,
        found: tuple[Capability | None, Verdict, Sequence[Contender], Sequence[Contender]],
    ) -> Decision:
        capability, verdict, group, others = found
        chosen = verdict.chosen
        listed = in_order(group, chosen.key if chosen else None)
        kept, counted = listed[: self.rules.group_kept], listed[self.rules.group_kept :]
        left_out = Counter(verdict.rejections[one.key].value for one in counted)
        left_out[Rejection.OTHER_CAPABILITY.value] += max(registry.keys - len(group) - len(others), 0)
        candidates: list[Candidate] = [one.candidate(verdict.rejections.get(one.key)) for one in kept]
        candidates += (one.candidate(Rejection.OTHER_CAPABILITY) for one in others)
        return Decision(
            text=query.text,
            outcome=verdict.outcome,
            reason=verdict.reason,
            capability=chosen.key.capability if chosen else capability,
            agent_id=chosen.key.agent_id if chosen else None,
            similarity=_similarity(query, ranking, capability),
            score=chosen.score if chosen else None,
            scope_score=ranking.scope_score if ranking else 0.0,
            scope_floor=ranking.scope_floor if ranking else 0.0,
            candidates=tuple(candidates),
            left_out={reason: count for reason, count in sorted(left_out.items()) if count},
            weights=self.rules.weights,
            encoder_id=registry.encoder_id,
            registry_version=ranking.registry_version if ranking else registry.version,
            calibration=ranking.calibration if ranking else registry.calibration,
            retry_after_s=self.rules.retry_after_s if verdict.outcome is Outcome.UNAVAILABLE else None,
        )


def _winner(ranking: Ranking | None) -> Capability | None:
    return ranking.winner.capability if ranking is not None and ranking.winner is not None else None


def _refused(outcome: Outcome, reason: Rejection, group: Sequence[Contender]) -> Verdict:
    return Verdict(
        outcome=outcome,
        reason=reason.value,
        chosen=None,
        rejections={one.key: reason for one in group},
    )


def _similarity(query: Query, ranking: Ranking | None, capability: Capability | None) -> float:
    entries = ranking.capabilities if ranking is not None else ()
    return next((one.similarity for one in entries if one.capability == capability), query.similarity)
