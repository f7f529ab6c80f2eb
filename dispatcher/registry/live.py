"""What routing may ask about the agents' current state; the live view implements it."""

from collections.abc import Sequence
from typing import Protocol

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent, AgentStatus


class AgentDirectory(Protocol):
    """All answers are from memory, consistent within one call, and never block."""

    def group(self, capability: Capability) -> Sequence[Agent]:
        """Every registered agent that declares the capability, up or not, by agent id.

        The same unchanged object for as long as nothing is declared anew: what was made from it holds
        until another one is answered.
        """
        ...

    def status(self, agent_id: AgentId) -> AgentStatus:
        """What is known of the agent now; OFFLINE with capacity 0 for an unknown one."""
        ...

    def success(self, agent_id: AgentId, capability: Capability) -> float:
        """Shrunk, decayed success estimate in [0, 1]; the prior is 0.8, worth 20 calls."""
        ...
