"""The agents that a decision looks at as they are now, each with every factor of its score."""

from collections.abc import Iterable
from typing import NamedTuple

from dispatcher.identifiers import AgentId
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Candidate, Rejection, Weights
from dispatcher.routing.score import composite, headroom
from dispatcher.routing.shortlist import Line
from dispatcher.routing.slots import Key


class Contender(NamedTuple):
    """One agent that competes: declared, observed, and its record with every factor."""

    key: Key
    agent: Agent
    status: AgentStatus
    record: Candidate

    @property
    def score(self) -> float:
        """Its composite score."""
        return self.record.score

    @property
    def is_suspect(self) -> bool:
        """Whether its heartbeats are late."""
        return self.status.liveness is Liveness.SUSPECT

    def rejected(self, rejection: Rejection | None) -> Candidate:
        """Its record in a decision that left it out for this reason; None is for the chosen one."""
        return Candidate(*self.record[:-1], rejection)


class Sight:
    """Looks at agents for one decision: state, success and score are of this moment, the rest is known."""

    def __init__(self, directory: AgentDirectory, weights: Weights) -> None:
        self._directory = directory
        self._weights = weights
        self._seen: dict[AgentId, tuple[AgentStatus, float]] = {}
        """State and headroom of each agent; one may be there with many capabilities."""

    def contenders(self, lines: Iterable[Line]) -> list[Contender]:
        """Those who compete."""
        found = []
        for line in lines:
            status, free = self._state(line.key.agent_id)
            found.append(Contender(line.key, line.agent, status, self._record(line, free, None)))
        return found

    def neighbours(self, lines: Iterable[Line]) -> list[Candidate]:
        """Those of other capabilities, who only are on record."""
        other = Rejection.OTHER_CAPABILITY
        return [self._record(line, self._state(line.key.agent_id)[1], other) for line in lines]

    def _record(self, line: Line, free: float, rejection: Rejection | None) -> Candidate:
        (capability, agent_id), _, cosine, similarity = line
        success = self._directory.success(agent_id, capability)
        score = composite(self._weights, similarity, success, free)
        return Candidate(agent_id, capability, cosine, similarity, success, free, score, rejection)

    def _state(self, agent_id: AgentId) -> tuple[AgentStatus, float]:
        state = self._seen.get(agent_id)
        if state is None:
            status = self._directory.status(agent_id)
            state = self._seen[agent_id] = (status, headroom(status))
        return state


def in_order(contenders: Iterable[Contender], chosen: Contender | None) -> list[Contender]:
    """As a decision lists them: the chosen one, then by falling score, ties by key."""
    return sorted(contenders, key=lambda one: (one is not chosen, -one.score, one.key))
