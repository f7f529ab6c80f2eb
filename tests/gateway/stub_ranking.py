"""Rankings as the router makes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dispatcher.identifiers import AgentId, Capability


@dataclass(frozen=True, kw_only=True)
class CapabilityRank:
    """One place in a ranking."""

    capability: Capability
    agent_cosines: Mapping[AgentId, float]
    cosine: float
    similarity: float
    score: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """A ranking of one text."""

    text: str
    capabilities: Sequence[CapabilityRank]
    in_scope: bool = True
    scope_score: float = 0.5
    scope_floor: float = 0.2
    calibration: str = "self"
