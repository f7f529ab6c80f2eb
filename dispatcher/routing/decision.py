"""What routing answers: the decision, its candidates, and why each other agent was left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from dispatcher.identifiers import AgentId, Capability


class Outcome(StrEnum):
    """How a decision ended."""

    SELECTED = "selected"
    OUT_OF_SCOPE = "out_of_scope"
    UNAVAILABLE = "unavailable"


class Rejection(StrEnum):
    """Why an agent was not chosen although it was looked at; the funnel's steps in order."""

    OTHER_CAPABILITY = "other_capability"
    BELOW_SCOPE_FLOOR = "below_scope_floor"
    NOT_GRANTED = "not_granted"
    ENVIRONMENT = "environment"
    HOURS = "hours"
    PAYLOAD_SIZE = "payload_size"
    OFFLINE = "offline"
    DRAINING = "draining"
    ALREADY_TRIED = "already_tried"
    SATURATED = "saturated"
    """At load 0.9 or more while another of the group is below."""
    BELOW_COMPOSITE_FLOOR = "below_composite_floor"
    OUTRANKED = "outranked"


class Candidate(NamedTuple):
    """An agent that could take the intent, with every factor of its score, or the reason why not.

    `similarity`, `success`, `headroom` and `score` are in [0, 1]; `cosine` is the raw prototype
    score of the encoder. `rejection` is None for the chosen agent only. A decision has up to 84 of
    them: a tuple is made in a third of a dataclass's time.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One intent's routing, complete enough to be computed again offline with other weights.

    `candidates` holds the winning capability's group and the next 20 by similarity; agents
    beyond are only counted in `left_out`. `similarity` is that of the winning capability.
    `scope_score` and `scope_floor` are on the encoder's contrastive scale.
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
    """`self`, `reference` or `uncalibrated`: what the similarity curve was fitted on."""
    retry_after_s: int | None = None
    elapsed_ms: float = 0.0
