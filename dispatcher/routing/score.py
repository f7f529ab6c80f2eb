"""The composite score (requirement C1): what an agent of the right capability is worth right now."""

from dispatcher.registry.agent import AgentStatus
from dispatcher.routing.decision import Weights


def headroom(status: AgentStatus) -> float:
    """The share of the agent's capacity that is free, in [0, 1]; 0 where it has none."""
    return min(max(1.0 - status.load, 0.0), 1.0)


def composite(weights: Weights, similarity: float, success: float, headroom: float) -> float:
    """The weighted sum of three factors in [0, 1], itself in [0, 1]."""
    total = weights.similarity * similarity + weights.success * success + weights.headroom * headroom
    # Rounding alone leads out of it; to ask costs a quarter of what two calls for each candidate do.
    return total if 0.0 <= total <= 1.0 else float(total > 0.0)
