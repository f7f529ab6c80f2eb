"""How many calls run at once, and which agents asked to be left alone for a while."""

from collections import Counter
from dataclasses import dataclass, field

from dispatcher.clock import Clock
from dispatcher.errors import RefusedError
from dispatcher.identifiers import AgentId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSlots:
    """At most `per_agent` calls of one agent and `total` of all run at once; the next is refused."""

    total: int
    per_agent: int
    clock: Clock
    _running: Counter[AgentId] = field(default_factory=Counter)
    _pauses: dict[AgentId, float] = field(default_factory=dict)
    """Until when (monotonic) an agent is not called. What is over is dropped when the next begins."""

    def take(self, agent_id: AgentId) -> None:
        """Take a slot; raises `RefusedError`, with the code `busy` while the agent's pause lasts."""
        if self._pauses.get(agent_id, 0.0) > self.clock.monotonic():
            raise RefusedError(f"agent {agent_id} asked to be called later", code="busy")
        if self._running[agent_id] >= self.per_agent or self._running.total() >= self.total:
            raise RefusedError(f"too many calls run for agent {agent_id} to get another")
        self._running[agent_id] += 1

    def give_back(self, agent_id: AgentId) -> None:
        """End of a call that took a slot."""
        self._running[agent_id] -= 1
        if not self._running[agent_id]:
            del self._running[agent_id]

    def pause(self, agent_id: AgentId, seconds: float) -> None:
        """Refuse calls of the agent for so long, or for the pause that runs if that is longer."""
        now = self.clock.monotonic()
        for other in [other for other, until in self._pauses.items() if until <= now]:
            del self._pauses[other]
        self._pauses[agent_id] = max(now + seconds, self._pauses.get(agent_id, 0.0))
