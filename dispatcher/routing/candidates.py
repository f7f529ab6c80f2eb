"""The agents that a decision looks at, each with every factor of its score."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.curve import Doubles
from dispatcher.routing.decision import Candidate, Rejection
from dispatcher.routing.eligibility import Prospect
from dispatcher.routing.policy import Scored
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.score import composite, headroom
from dispatcher.routing.slots import Key

Similarity = Callable[[Doubles], Doubles]
"""Contrastive scores to calibrated similarities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One agent with its factors."""

    prospect: Prospect
    cosine: float
    similarity: float
    success: float
    headroom: float
    score: float

    @property
    def key(self) -> Key:
        """Whose factors these are."""
        return self.prospect.key

    @property
    def scored(self) -> Scored:
        """What the policy needs of it."""
        suspect = self.prospect.status.liveness is Liveness.SUSPECT
        return Scored(key=self.key, score=self.score, is_suspect=suspect)

    def candidate(self, rejection: Rejection | None) -> Candidate:
        """The record of it in a decision."""
        return Candidate(
            agent_id=self.key.agent_id,
            capability=self.key.capability,
            cosine=self.cosine,
            similarity=self.similarity,
            success=self.success,
            headroom=self.headroom,
            score=self.score,
            rejection=rejection,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An agent and how well the text fits it, before its state is looked at."""

    agent: Agent
    capability: Capability
    cosine: float
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contenders:
    """Builds contenders from the directory's answers."""

    directory: AgentDirectory
    rules: RoutingRules

    def group(self, capability: Capability, similarity: float) -> list[Contender]:
        """A capability's agents where no text was ranked: all have the given similarity, cosine 0."""
        return [
            self._contender(Line(agent=agent, capability=capability, cosine=0.0, similarity=similarity), {})
            for agent in self.directory.group(capability)
        ]

    def ranked_group(
        self, entry: CapabilityScore, ranking: Ranking, similarity: Similarity
    ) -> list[Contender]:
        """A ranked capability's agents; one that registered since has the group's best cosine."""
        capability, cosines = entry.capability, entry.agent_cosines
        agents = self.directory.group(capability)
        lines = [(agent, capability, cosines.get(agent.agent_id, entry.cosine)) for agent in agents]
        return self._contenders(lines, ranking, similarity)

    def neighbours(
        self, entries: Iterable[CapabilityScore], ranking: Ranking, similarity: Similarity
    ) -> list[Contender]:
        """The agents of other capabilities that fit best, at most `neighbours_kept`."""
        nearest = sorted(
            (-cosine, agent_id, entry.capability)
            for entry in entries
            for agent_id, cosine in entry.agent_cosines.items()
        )
        found: list[tuple[Agent, Capability, float]] = []
        for cosine, agent_id, capability in nearest:
            agent = self._registered(agent_id, capability)
            if agent is not None:
                found.append((agent, capability, -cosine))
            if len(found) == self.rules.neighbours_kept:
                break
        return self._contenders(found, ranking, similarity)

    def _registered(self, agent_id: AgentId, capability: Capability) -> Agent | None:
        group = self.directory.group(capability)
        return next((agent for agent in group if agent.agent_id == agent_id), None)

    def _contenders(
        self, lines: Sequence[tuple[Agent, Capability, float]], ranking: Ranking, similarity: Similarity
    ) -> list[Contender]:
        """All of them in one call of the curve, which costs as much for one score as for fifty."""
        if not lines:
            return []
        scores = np.array([cosine for _, _, cosine in lines], dtype=np.float64) - ranking.contrast
        seen: dict[AgentId, AgentStatus] = {}
        return [
            self._contender(Line(agent=agent, capability=capability, cosine=cosine, similarity=value), seen)
            for (agent, capability, cosine), value in zip(lines, similarity(scores).tolist(), strict=True)
        ]

    def _contender(self, line: Line, seen: dict[AgentId, AgentStatus]) -> Contender:
        """`seen` are the states looked at for the same decision: one agent may have many capabilities."""
        agent_id = line.agent.agent_id
        status = seen.get(agent_id)
        if status is None:
            status = seen[agent_id] = self.directory.status(agent_id)
        success = self.directory.success(agent_id, line.capability)
        free = headroom(status)
        return Contender(
            prospect=Prospect(key=Key(line.capability, agent_id), agent=line.agent, status=status),
            cosine=line.cosine,
            similarity=line.similarity,
            success=success,
            headroom=free,
            score=composite(self.rules.weights, line.similarity, success, free),
        )


def in_order(contenders: Iterable[Contender], chosen: Key | None) -> Sequence[Contender]:
    """As a decision lists them: the chosen one, then by falling score, ties by key."""
    return sorted(contenders, key=lambda one: (one.key != chosen, -one.score, one.key))
