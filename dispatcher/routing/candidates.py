"""The agents that a decision looks at, each with every factor of its score."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.registry.live import AgentDirectory
from dispatcher.routing.decision import Candidate, Rejection, Weights
from dispatcher.routing.score import composite, headroom
from dispatcher.routing.shortlist import Line
from dispatcher.routing.slots import Key

GLANCE_S = 0.1
"""How old the factors of an agent that does not compete may be: nothing is decided by them."""


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
        return Candidate(*self.record[:-1], rejection) if rejection else self.record


class Sight:
    """Looks at agents: state, success and score of who competes are of this moment.

    Of everybody else they are at most `GLANCE_S` old, for whichever text they were looked at.
    """

    def __init__(self, directory: AgentDirectory, weights: Weights) -> None:
        self._directory = directory
        self._weights = weights
        self._glances: dict[Key, tuple[float, float]] = {}
        """Success and headroom of those who were looked at lately and did not compete."""
        self._seen: dict[int, tuple[Sequence[Line], Sequence[Candidate]]] = {}
        """What was made lately of lines that a shortlist keeps, by their identity."""
        self._glances_end = -inf

    def contenders(self, lines: Iterable[Line]) -> list[Contender]:
        """Those who compete."""
        found = []
        for line in lines:
            status = self._directory.status(line.key.agent_id)
            record = self._record(line, self._success(line.key), headroom(status), None)
            found.append(Contender(line.key, line.agent, status, record))
        return found

    def neighbours(self, lines: Sequence[Line], now: float) -> Sequence[Candidate]:
        """Those of other capabilities, who only are on record; `now` in seconds of a monotonic clock."""
        if now >= self._glances_end:
            self._glances, self._seen, self._glances_end = {}, {}, now + GLANCE_S
        known = self._seen.get(id(lines))
        if known is not None:
            return known[1]
        other = Rejection.OTHER_CAPABILITY
        made = [self._record(line, *self._glance(line.key), other) for line in lines]
        # With the lines, so that no others can have their identity.
        self._seen[id(lines)] = lines, made
        return made

    def _glance(self, key: Key) -> tuple[float, float]:
        seen = self._glances.get(key)
        if seen is None:
            free = headroom(self._directory.status(key.agent_id))
            seen = self._glances[key] = (self._success(key), free)
        return seen

    def _success(self, key: Key) -> float:
        return self._directory.success(key.agent_id, key.capability)

    def _record(self, line: Line, success: float, free: float, rejection: Rejection | None) -> Candidate:
        (capability, agent_id), _, cosine, similarity = line
        score = composite(self._weights, similarity, success, free)
        return Candidate(agent_id, capability, cosine, similarity, success, free, score, rejection)


def in_order(contenders: Iterable[Contender], chosen: Contender | None) -> list[Contender]:
    """As a decision lists them: the chosen one, then by falling score, ties by key."""
    return sorted(contenders, key=lambda one: (one is not chosen, -one.score, one.key))
