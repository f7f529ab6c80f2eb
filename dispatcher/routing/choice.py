"""From a ranking to a decision: scope, then the funnel, then the policy. In memory, no waiting."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dispatcher.clock import Clock
from dispatcher.identifiers import Capability
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.ambiguity import near_options
from dispatcher.routing.candidates import Contender, Sight, in_order
from dispatcher.routing.decision import Candidate, Decision, Option, Outcome, Rejection, ShadowDecision
from dispatcher.routing.eligibility import Demand, rejections
from dispatcher.routing.policy import highest_score
from dispatcher.routing.ranking import Ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.shadow import shadow_decision
from dispatcher.routing.shortlist import Shortlist, Shortlister, Similarity, Wish
from dispatcher.routing.shortlists import Shortlists
from dispatcher.routing.slots import Key

FUNNEL = tuple(Rejection)
"""The reasons in the funnel's order."""


class Query(Demand, frozen=True, kw_only=True):
    """One intent to be decided.

    `capability` None asks for the ranking's winner, subject to the floors. A given one was decided
    before, by the caller or an earlier ranking: it skips the floors and has `similarity`, in [0, 1],
    wherever the ranking doesn't know better.
    """

    text: str
    capability: Capability | None
    similarity: float


class Verdict(NamedTuple):
    """What became of the intent; `rejections` has every looked-at agent but the chosen one."""

    outcome: Outcome
    reason: str
    chosen: Contender | None
    rejections: Mapping[Key, Rejection]
    options: tuple[Option, ...] = ()


class Finding(NamedTuple):
    """A verdict with all that was looked at for it."""

    capability: Capability | None
    similarity: float
    verdict: Verdict
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """What a decision says about where it was made."""

    similarity: Similarity
    keys: int
    """Agents and capabilities registered, pair by pair."""
    encoder_id: str
    version: int
    calibration: str
    twins: frozenset[tuple[Capability, Capability]] = frozenset()


class Choice:
    """Makes decisions; deterministic, whatever the order in which agents are given.

    Belongs to one state of the registry: what follows from that and a ranking is remembered.
    """

    def __init__(
        self, directory: AgentDirectory, rules: RoutingRules, registry: Registry, clock: Clock
    ) -> None:
        self._directory = directory
        self._shortlists = Shortlists(
            Shortlister(groups=directory.group, similarity=registry.similarity, rules=rules)
        )
        self._sight = Sight(directory, rules.weights)
        self._rules = rules
        self._clarifies = rules.clarify.is_on
        self._registry = registry
        self._clock = clock

    def decide(self, query: Query, ranking: Ranking | None) -> Decision:
        """The decision for one intent."""
        started = self._clock.monotonic()
        found = self._find(query, ranking, started)
        outcome, reason, chosen, _, options = found.verdict
        return Decision(
            text=query.text,
            outcome=outcome,
            reason=reason,
            capability=chosen.key.capability if chosen else found.capability,
            agent_id=chosen.key.agent_id if chosen else None,
            similarity=found.similarity,
            score=chosen.score if chosen else None,
            scope_score=ranking.scope_score if ranking else 0.0,
            scope_floor=ranking.scope_floor if ranking else 0.0,
            candidates=found.candidates,
            left_out=found.left_out,
            weights=self._rules.weights,
            encoder_id=self._registry.encoder_id,
            registry_version=ranking.registry_version if ranking else self._registry.version,
            calibration=ranking.calibration if ranking else self._registry.calibration,
            retry_after_s=self._rules.retry_after_s if outcome is Outcome.UNAVAILABLE else None,
            elapsed_ms=(self._clock.monotonic() - started) * 1000,
            advice=ranking.advice if ranking else (),
            shadow=self._in_shadow(query, ranking, found.verdict),
            options=options,
            winner=_winner(ranking),
            contrast=ranking.contrast if ranking else None,
            ranked_text=ranking.text if ranking and ranking.text != query.text else None,
        )

    def _find(self, query: Query, ranking: Ranking | None, now: float) -> Finding:
        capability = query.capability or _winner(ranking)
        if capability is None:
            nothing = Verdict(Outcome.OUT_OF_SCOPE, "nothing_registered", None, {})
            return Finding(None, query.similarity, nothing, (), self._left_out({}, (), 0))
        shortlist = self._shortlists.find(Wish(capability, query.similarity, ranking))
        group = self._sight.contenders(shortlist.group)
        others = self._sight.neighbours(shortlist.neighbours, now)
        verdict = self._verdict(query, shortlist, group)
        listed, kept = in_order(group, verdict.chosen), self._rules.group_kept
        records = [one.rejected(verdict.rejections.get(one.key)) for one in listed[:kept]]
        left_out = self._left_out(verdict.rejections, listed[kept:], len(group) + len(others))
        return Finding(capability, shortlist.similarity, verdict, (*records, *others), left_out)

    def _verdict(self, query: Query, shortlist: Shortlist, group: Sequence[Contender]) -> Verdict:
        capability, _, ranking = shortlist.wish
        if query.capability is None and ranking is not None and not ranking.in_scope:
            return _refused(Outcome.OUT_OF_SCOPE, Rejection.BELOW_SCOPE_FLOOR, group)
        if not query.allows(capability):
            return _refused(Outcome.OUT_OF_SCOPE, Rejection.NOT_GRANTED, group)
        if not shortlist.is_declared:
            others = dict.fromkeys((one.key for one in group), Rejection.OTHER_CAPABILITY)
            return Verdict(Outcome.UNAVAILABLE, "unknown_capability", None, others)
        if self._clarifies and ranking is not None:
            options = self._options(query, ranking)
            if options:
                asked = _refused(Outcome.CLARIFY, Rejection.AMBIGUOUS, group)
                return asked._replace(options=options)
        return self._pick(query, group)

    def _options(self, query: Query, ranking: Ranking) -> tuple[Option, ...]:
        """What the person is asked; of what the caller may use and somebody in the environment declares."""
        if query.capability not in {None, _winner(ranking)}:
            return ()

        def is_offered(capability: Capability) -> bool:
            agents = self._directory.group(capability)
            return query.allows(capability) and any(one.environment == query.environment for one in agents)

        return near_options(ranking, self._rules.clarify, is_offered, self._registry.twins)

    def _pick(self, query: Query, group: Sequence[Contender]) -> Verdict:
        left_out = rejections(group, query, self._rules.saturation)
        eligible = [one for one in group if one.key not in left_out]
        if not eligible:
            reason = max(left_out.values(), key=FUNNEL.index)
            return Verdict(Outcome.UNAVAILABLE, reason.value, None, left_out)
        # A suspect's room is no reason to hold the floor against who is heard, as it is none in eligibility.
        heard = [one for one in eligible if not one.is_suspect] or eligible
        is_saturated = all(one.status.load >= self._rules.saturation for one in heard)
        floor = 0.0 if is_saturated else self._rules.composite_floor
        chosen = highest_score(eligible, floor)
        for one in eligible:
            below = one.score < floor
            left_out[one.key] = Rejection.BELOW_COMPOSITE_FLOOR if below else Rejection.OUTRANKED
        if chosen is None:
            return Verdict(Outcome.UNAVAILABLE, Rejection.BELOW_COMPOSITE_FLOOR.value, None, left_out)
        del left_out[chosen.key]
        reason_given = "least_bad_of_saturated" if is_saturated else "highest_score"
        return Verdict(Outcome.SELECTED, reason_given, chosen, left_out)

    def _in_shadow(self, query: Query, ranking: Ranking | None, verdict: Verdict) -> ShadowDecision | None:
        """None where the floors did not decide: another calibration would have decided the same."""
        if ranking is None or ranking.shadow is None or ranking.advice:
            return None
        if not ranking.in_scope and _is_above(ranking, self._rules.similarity_floor):
            return None
        is_accepted = ranking.in_scope and query.capability == _winner(ranking)
        if query.capability is not None and not is_accepted:
            return None
        is_below = verdict.reason == Rejection.BELOW_SCOPE_FLOOR.value
        return shadow_decision(ranking.shadow, verdict.outcome, was_refused=is_below)

    def _left_out(
        self, rejected: Mapping[Key, Rejection], counted: Sequence[Contender], looked_at: int
    ) -> Mapping[str, int]:
        """How many are not among the candidates, by reason."""
        left_out = Counter(rejected[one.key].value for one in counted) if counted else {}
        beyond = self._registry.keys - looked_at
        if beyond > 0:
            other = Rejection.OTHER_CAPABILITY.value
            left_out[other] = left_out.get(other, 0) + beyond
        return dict(sorted(left_out.items()))


def _winner(ranking: Ranking | None) -> Capability | None:
    return ranking.winner.capability if ranking is not None and ranking.winner is not None else None


def _is_above(ranking: Ranking, similarity_floor: float) -> bool:
    """Whether the floors accept the text, whatever was made of that."""
    winner = ranking.winner
    is_similar = winner is not None and winner.similarity >= similarity_floor
    return is_similar and ranking.scope_score >= ranking.scope_floor


def _refused(outcome: Outcome, reason: Rejection, group: Sequence[Contender]) -> Verdict:
    return Verdict(outcome, reason.value, None, dict.fromkeys((one.key for one in group), reason))
