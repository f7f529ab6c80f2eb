"""Stored decisions decided again under other weights, floors or calibration: what would have changed.

A decision keeps every candidate with its factors and the reason why it was left out. What depends on
the moment (grants, hours, health, who was tried) stays as it was recorded; scope, load, floors and the
choice are worked out anew with the rules of `routing`. Two things were not recorded. Who was suspect is
told by who was chosen (`_was_suspect`); where it isn't, an agent is taken to have sent heartbeats. Whether
a language model chose what was the best by score as well is not known: it is taken not to have (`_raised`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dispatcher import records
from dispatcher.dispatch.fallback import BELOW_BAR, refused_by_floors, went_to_fallback
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId, Capability, RequestId
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.decision import Advice, Candidate, Decision, Outcome, Rejection, Weights
from dispatcher.routing.policy import highest_score
from dispatcher.routing.score import composite
from dispatcher.routing.slots import Key

RECORDED = frozenset(
    {
        Rejection.NOT_GRANTED,
        Rejection.ENVIRONMENT,
        Rejection.HOURS,
        Rejection.PAYLOAD_SIZE,
        Rejection.OFFLINE,
        Rejection.DRAINING,
        Rejection.ALREADY_TRIED,
    }
)
"""Reasons that other terms would not have changed."""
SATURATION = 0.9
"""The load limit that every decision was made with: no setting changes it."""
PRECISION = 1e-9
"""Loads are stored as 1 - headroom; a load at the limit itself counts as reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What decisions are made with; shares and floors in [0, 1].

    `scope_floor` None keeps each decision's own; a `calibration` brings its own floor and curve, and
    raises ConfigurationError at a decision made with another encoder.
    """

    weights: Weights = field(default_factory=Weights)
    similarity_floor: float = 0.35
    composite_floor: float = 0.35
    saturation: float = SATURATION
    scope_floor: float | None = None
    calibration: Calibration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecision:
    """One decision as it was recorded, for one intent of one request."""

    request_id: RequestId
    position: int
    recorded_ms: int
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Who took an intent, or why nobody did; `success` and `load` are the chosen agent's, in [0, 1].

    `is_refused` says that no capability of the text's own was near enough, whoever got it then.
    """

    outcome: Outcome
    reason: str
    capability: Capability | None
    is_refused: bool = False
    agent_id: AgentId | None = None
    score: float | None = None
    success: float | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contender:
    key: Key
    score: float
    is_suspect: bool
    record: Candidate


def as_recorded(decision: Decision) -> Choice:
    """What was decided then."""
    chosen = next((one for one in decision.candidates if one.rejection is None), None)
    made = _choice(decision.outcome, decision.reason, decision.capability, chosen)
    is_refused = decision.outcome is Outcome.OUT_OF_SCOPE or refused_by_floors(decision)
    return replace(made, is_refused=is_refused)


def decide_again(decision: Decision, terms: Terms) -> Choice:
    """What would have been decided under these terms.

    An agent that was not looked at because the intent was out of scope is taken to have been able. What
    no grant was there for and what fell short of the bar for descriptions stays as it was. So does what a
    person was asked about, where the text is in scope, and what the fallback capability got, where it is not.
    """
    own = of_text(decision)
    group = [one for one in own.candidates if one.rejection is not Rejection.OTHER_CAPABILITY]
    if not group or _stays(decision):
        return as_recorded(decision)
    # Scope first, as routing has it: a text below the floor is nothing to ask back about.
    if not _in_scope(own, terms):
        return _refused(decision)
    if decision.outcome is Outcome.CLARIFY:
        return as_recorded(decision)
    able = [one for one in group if one.rejection not in RECORDED]
    if not able:
        # It was out of reach then, and is so now: the last step of the funnel that left one out.
        order = tuple(Rejection)
        reason = max((one.rejection for one in group if one.rejection), key=order.index).value
        return _choice(Outcome.UNAVAILABLE, reason, _winner(own), None)
    return _pick(own, able, terms)


def of_text(decision: Decision) -> Decision:
    """The decision on the text itself: with its own candidates where the fallback capability got it."""
    if not decision.own_candidates or decision.own_similarity is None:
        return decision
    return records.replace(
        decision,
        similarity=decision.own_similarity,
        candidates=decision.own_candidates,
        capability=decision.winner,
        agent_id=None,
        score=None,
    )


def without_candidates(one: StoredDecision) -> StoredDecision:
    """What is left to be shown of it, in a hundredth of the memory."""
    bare = records.replace(one.decision, candidates=(), own_candidates=(), left_out={}, options=())
    return replace(one, decision=bare)


def is_named(decision: Decision) -> bool:
    """Whether the caller named the capability: no text was ranked, and no floor applies."""
    return decision.scope_score == 0.0 and decision.scope_floor == 0.0


def contrast(decision: Decision) -> float:
    """What was taken off every cosine of this text; of older decisions as far as their candidates tell."""
    if decision.contrast is not None:
        return decision.contrast
    return max((one.cosine for one in decision.candidates), default=0.0) - decision.scope_score


def _stays(decision: Decision) -> bool:
    if decision.reason in {Rejection.NOT_GRANTED.value, BELOW_BAR}:
        return True
    # Older decisions of the fallback capability did not keep what the text itself was near.
    is_replayable = bool(decision.own_candidates) and refused_by_floors(decision)
    return went_to_fallback(decision) and not is_replayable


def _refused(decision: Decision) -> Choice:
    if went_to_fallback(decision):
        return as_recorded(decision)
    is_with_people = decision.outcome is Outcome.HANDED_OFF
    outcome = Outcome.HANDED_OFF if is_with_people else Outcome.OUT_OF_SCOPE
    made = _choice(outcome, Rejection.BELOW_SCOPE_FLOOR.value, _winner(decision), None)
    return replace(made, is_refused=True)


def _winner(decision: Decision) -> Capability | None:
    """Whose scope floor counts; decisions from before it was stored have only who got the intent."""
    return decision.winner or decision.capability


def _in_scope(decision: Decision, terms: Terms) -> bool:
    if is_named(decision) or Advice.CHOICE in decision.advice:
        return True
    calibration = terms.calibration
    if calibration is None:
        floor = decision.scope_floor if terms.scope_floor is None else terms.scope_floor
        return decision.scope_score >= floor and decision.similarity >= terms.similarity_floor
    if calibration.encoder_id != decision.encoder_id:
        raise ConfigurationError(
            f"the calibration is for encoder {calibration.encoder_id!r}, "
            f"decisions were made with {decision.encoder_id!r}"
        )
    score = np.array([decision.scope_score])
    own = calibration.floor_of(_winner(decision))
    floor = own if terms.scope_floor is None else terms.scope_floor
    similar = float(calibration.similarity(score)[0])
    return decision.scope_score >= floor and similar >= terms.similarity_floor


def _pick(decision: Decision, able: Sequence[Candidate], terms: Terms) -> Choice:
    then = next((one for one in able if one.rejection is None), None)
    heard = [one for one in able if not _was_suspect(one, then)]
    is_saturated = not any(_has_room(one, terms.saturation) for one in heard)
    floor = 0.0 if is_saturated else terms.composite_floor
    eligible = [one for one in able if is_saturated or _has_room(one, terms.saturation)]
    chosen = highest_score([_contender(decision, one, then, terms) for one in eligible], floor)
    if chosen is None:
        reason = Rejection.BELOW_COMPOSITE_FLOOR.value
        return _choice(Outcome.UNAVAILABLE, reason, _winner(decision), None)
    reason = "least_bad_of_saturated" if is_saturated else "highest_score"
    record = chosen.record._replace(score=chosen.score)
    return _choice(Outcome.SELECTED, reason, record.capability, record)


def _raised(decision: Decision, one: Candidate) -> float:
    """What routing adds to the scores of the winner's agents (`routing.shortlist`).

    Nothing where a language model chose: routing adds it there too if the winner had the best score, which
    no decision tells.
    """
    winner = _winner(decision)
    if one.capability != winner or Advice.CHOICE in decision.advice:
        return 0.0
    best = max(other.cosine for other in decision.candidates if other.capability == winner)
    return max(decision.scope_score - (best - contrast(decision)), 0.0)


def _contender(decision: Decision, one: Candidate, then: Candidate | None, terms: Terms) -> _Contender:
    similarity = one.similarity
    if terms.calibration is not None and not is_named(decision):
        score = one.cosine - contrast(decision) + _raised(decision, one)
        similarity = float(terms.calibration.similarity(np.array([score]))[0])
    return _Contender(
        key=Key(one.capability, one.agent_id),
        score=composite(terms.weights, similarity, one.success, one.headroom),
        is_suspect=_was_suspect(one, then),
        record=one,
    )


def _was_suspect(one: Candidate, then: Candidate | None) -> bool:
    """Whether it sent no heartbeats, inferred from who was chosen `then`; None tells nothing.

    Only a suspect is outranked by an agent that comes after it by score and id. Only where none but suspects
    had room does a saturated agent get the intent, and it was heard.
    """
    if then is None:
        return False
    is_passed_over = one.rejection is Rejection.OUTRANKED and _place(one) < _place(then)
    return is_passed_over or (_has_room(one, SATURATION) and not _has_room(then, SATURATION))


def _place(one: Candidate) -> tuple[float, AgentId, Capability]:
    """Where it is among those that are heard (`routing.policy`), first the smallest."""
    return -one.score, one.agent_id, one.capability


def _has_room(one: Candidate, saturation: float) -> bool:
    return _load(one) < saturation - PRECISION


def _load(one: Candidate) -> float:
    return 1.0 - one.headroom


def _choice(outcome: Outcome, reason: str, capability: Capability | None, chosen: Candidate | None) -> Choice:
    if chosen is None:
        return Choice(outcome=outcome, reason=reason, capability=capability)
    return Choice(
        outcome=outcome,
        reason=reason,
        capability=chosen.capability,
        agent_id=chosen.agent_id,
        score=chosen.score,
        success=chosen.success,
        load=_load(chosen),
    )
