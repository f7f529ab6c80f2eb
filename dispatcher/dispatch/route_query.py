"""Who would take work of one capability now, for callers that dispatch themselves (C9).

The dispatcher sends nothing and holds nothing for them: what it tells is what its own next
decision would look at. With agents that allow it comes a ticket to call them while no dispatcher
is there (D10).
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dispatcher.clock import Calendar
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.direct import Permit
from dispatcher.registry.access import Identity
from dispatcher.registry.agent import Agent
from dispatcher.registry.direct import Moment, direct_endpoint
from dispatcher.registry.direct_book import DirectBook
from dispatcher.registry.observation import Observation
from dispatcher.registry.view import LiveView
from dispatcher.routing.decision import Candidate, Rejection
from dispatcher.routing.reindex import Routes
from dispatcher.routing.router import Query

_CONSIDERED = frozenset({None, Rejection.OUTRANKED, Rejection.SATURATED, Rejection.BELOW_COMPOSITE_FLOOR})
"""What became of agents that can do the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteQueryRules:
    """How long a list is worth keeping, in seconds, and the range of the pause before another try."""

    expires_in_s: float = 5.0
    retry_min_ms: int = 100
    retry_max_ms: int = 800


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectWay:
    """Where and with which ticket the caller may call the agent itself; see `registry.direct.Ticket`."""

    endpoint: str
    ticket: str = field(repr=False)
    expires_in_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCandidate:
    """One agent as it is now.

    `p95_ms` is the slowest instance's, None where none has told any. A throttled one is at its
    limit: another task would wait. `timeout_ms` is what the agent declares for the whole task.
    """

    agent_id: AgentId
    score: float
    p95_ms: float | None
    running: int
    capacity: int
    throttled: bool
    idempotent: bool
    timeout_ms: int
    direct: DirectWay | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteList:
    """Candidates, those that are not throttled first, then by falling score.

    `throttled` says that no candidate has room now, `retry_after_ms` when to ask again then: random,
    so that callers do not come back together. `inputs` names the fields that the capability takes.
    """

    capability: Capability
    caller: str
    expires_in_s: float
    retry_after_ms: int
    throttled: bool
    inputs: Sequence[str]
    candidates: Sequence[RouteCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteQuery:
    """Answers from memory; the secret behind tickets is read from the database now and then."""

    router: Routes
    view: LiveView
    book: DirectBook
    calendar: Calendar
    chance: random.Random
    rules: RouteQueryRules = field(default_factory=RouteQueryRules)

    async def candidates(
        self, capability: Capability, environment: str, identity: Identity
    ) -> RouteList | None:
        """The list for this caller; None for a capability that is unknown or not granted to it (I6).

        Raises UnavailableError where tickets are due and the database can't be asked.
        """
        contract = self.view.contracts.get(capability)
        if contract is None or not identity.allows(capability):
            return None
        found = self._considered(capability, environment, identity)
        is_direct = any(direct_endpoint(agent) is not None for _, agent in found)
        moment = await self.book.now() if is_direct else None
        made = [self._candidate(one, agent, identity, moment) for one, agent in found]
        fields = contract.input_schema.get("properties")
        return RouteList(
            capability=capability,
            caller=identity.caller_id,
            expires_in_s=self.rules.expires_in_s,
            retry_after_ms=self.chance.randint(self.rules.retry_min_ms, self.rules.retry_max_ms),
            throttled=all(one.throttled for one in made),
            inputs=sorted(fields) if isinstance(fields, dict) else (),
            candidates=sorted(made, key=lambda one: one.throttled),
        )

    def _considered(
        self, capability: Capability, environment: str, identity: Identity
    ) -> Sequence[tuple[Candidate, Agent]]:
        query = Query(
            text="",
            capability=capability,
            similarity=1.0,
            allows=identity.allows,
            environment=environment,
            payload_bytes=0,
            tried=frozenset(),
            now=self.calendar.now(),
        )
        found = [one for one in self.router.decide(query).candidates if one.rejection in _CONSIDERED]
        agents = [(one, self.view.agent(one.agent_id)) for one in found]
        return [(one, agent) for one, agent in agents if agent is not None]

    def _candidate(
        self, candidate: Candidate, agent: Agent, identity: Identity, moment: Moment | None
    ) -> RouteCandidate:
        agent_id, capability = candidate.agent_id, candidate.capability
        status, declared = self.view.status(agent_id), agent.capability(capability)
        is_full = status.running >= status.capacity
        return RouteCandidate(
            agent_id=agent_id,
            score=candidate.score,
            p95_ms=slowest_p95_ms(self.view.instances(agent_id), capability),
            running=status.running,
            capacity=status.capacity,
            throttled=is_full or candidate.rejection is Rejection.SATURATED,
            idempotent=declared is not None and declared.idempotent,
            timeout_ms=declared.timeout_ms if declared else 0,
            direct=None if moment is None else _direct_way(agent, capability, identity, moment),
        )


def _direct_way(agent: Agent, capability: Capability, identity: Identity, moment: Moment) -> DirectWay | None:
    endpoint = direct_endpoint(agent)
    if endpoint is None:
        return None
    permit = Permit(caller=identity.caller_id, capability=capability, agent_id=agent.agent_id)
    ticket = moment.ticket(permit)
    return DirectWay(endpoint=endpoint, ticket=ticket.text, expires_in_s=ticket.expires_in_s)


def slowest_p95_ms(observations: Iterable[Observation], capability: Capability) -> float | None:
    """The longest 95 % quantile that an instance told of the capability, or else of all its work."""
    told = []
    for one in observations:
        if one.heartbeat is not None:
            load = one.heartbeat.capabilities.get(capability)
            told.append(load.p95_ms if load else one.heartbeat.p95_ms)
    return max((value for value in told if value is not None), default=None)
