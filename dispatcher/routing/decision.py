"""What routing answers: the decision, its candidates, and why each other agent was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import Struct


class Outcome(StrEnum):
    """How a decision ended."""

    SELECTED = "selected"
    OUT_OF_SCOPE = "out_of_scope"
    UNAVAILABLE = "unavailable"
    CLARIFY = "clarify"
    """Several capabilities are too near to one another; the person says which."""
    HANDED_OFF = "handed_off"
    """A person does it."""


class Rejection(StrEnum):
    """Why an agent was not chosen although it was looked at; the funnel's steps in order."""

    OTHER_CAPABILITY = "other_capability"
    BELOW_SCOPE_FLOOR = "below_scope_floor"
    NOT_GRANTED = "not_granted"
    AMBIGUOUS = "ambiguous"
    """Its capability is one of several too near to one another."""
    ENVIRONMENT = "environment"
    HOURS = "hours"
    PAYLOAD_SIZE = "payload_size"
    OFFLINE = "offline"
    DRAINING = "draining"
    ALREADY_TRIED = "already_tried"
    SATURATED = "saturated"
    """At load 0.9 or more while another of its group that is heard is below."""
    BELOW_COMPOSITE_FLOOR = "below_composite_floor"
    OUTRANKED = "outranked"


class Advice(StrEnum):
    """What a language model had to do with a decision."""

    SPLIT = "split"
    """It drew the borders of the text; the rules alone drew others."""
    CHOICE = "choice"
    """It chose the capability among those that the rules could not tell apart."""


class Option(NamedTuple):
    """One of several near capabilities; `similarity` is calibrated, in [0, 1]."""

    capability: Capability
    similarity: float


class Candidate(NamedTuple):
    """An agent that could take the intent, with every factor of its score, or the reason why not.

    `similarity`, `success`, `headroom` and `score` are in [0, 1]; `cosine` is the raw prototype
    score of the encoder. `rejection` is None for the chosen agent only. Success and headroom of one
    that did not compete may be a tenth of a second old. A decision has up to 84 of them: a tuple is
    made in a third of a dataclass's time.
    """

    agent_id: AgentId
    capability: Capability
    cosine: float
    similarity: float
    success: float
    headroom: float
    score: float
    rejection: Rejection | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Shares of the composite score; they sum to 1 (requirement C1)."""

    similarity: float = 0.5
    success: float = 0.3
    headroom: float = 0.2


class ShadowDecision(Struct, frozen=True, kw_only=True):
    """What the calibration in shadow, by its number, would have made of a text.

    `outcome` differs from the decision's own only where its floors do; where those in force refused the
    text, `selected` means that it would have been in scope.
    """

    number: int
    outcome: Outcome
    similarity: float
    scope_floor: float


class Decision(Struct, frozen=True, kw_only=True):
    """One intent's routing, complete enough to be computed again offline with other weights.

    `candidates` holds the winning capability's group and the next 20 by similarity; agents
    beyond are only counted in `left_out`. `similarity` is that of the winning capability.
    `scope_score` and `scope_floor` are on the encoder's contrastive scale. `advice` holds names of
    `Advice`; without any the rules alone decided. `options` are the near capabilities that the person
    is asked about, best first.
    """

    text: str
    outcome: Outcome
    reason: str
    capability: Capability | None
    agent_id: AgentId | None
    similarity: float
    score: float | None
    scope_score: float
    scope_floor: float
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, int]
    weights: Weights
    encoder_id: str
    registry_version: int
    calibration: str
    """`self`, `reference` or `uncalibrated`: what the similarity curve was fitted on; `labelled` or `traffic`
    with its number where a stored one is in force.
    """
    retry_after_s: int | None = None
    elapsed_ms: float = 0.0
    advice: tuple[str, ...] = ()
    shadow: ShadowDecision | None = None
    """None without a calibration in shadow, and where its floors would not decide: the capability was named,
    or the floors in force accepted the text and a higher bar did not.
    """
    options: tuple[Option, ...] = ()
    winner: Capability | None = None
    """The best capability of the ranking, whose scope floor counts; a near one may have got the intent."""
    contrast: float | None = None
    """What was taken off every cosine of the text; None without a ranking."""
    ranked_text: str | None = None
    """What was ranked, where that is not `text`: a follow-up goes with what was said before it."""
    refused_for: str | None = None
    """Of a decision for the fallback capability: the reason why none of the text's own got it."""
    own_similarity: float | None = None
    own_candidates: tuple[Candidate, ...] = ()
    """Of a decision for the fallback capability: `similarity` and `candidates` of the refused text itself."""
