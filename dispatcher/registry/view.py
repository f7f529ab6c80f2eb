"""The live view: who is there and how it is, in memory; what routing reads on every decision."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from dispatcher.clock import Clock
from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent, AgentStatus, Instance, Liveness, LivenessRules
from dispatcher.registry.catalog import EMPTY, build_catalog, with_agent, without_agent
from dispatcher.registry.hearing import Hearing
from dispatcher.registry.liveness import liveness
from dispatcher.registry.observation import Observation
from dispatcher.registry.repository import CapabilityContract, RegistrySnapshot
from dispatcher.registry.roster import Roster
from dispatcher.registry.success import Outcomes, SuccessRules, SuccessWindow

_UNKNOWN = AgentStatus(liveness=Liveness.OFFLINE, capacity=0, running=0, draining=False)


class OutcomeCounts(Protocol):
    """Decayed outcomes of one agent at one capability, as a ledger counts them."""

    @property
    def agent_id(self) -> AgentId:
        """Whose attempts."""

    @property
    def capability(self) -> Capability:
        """At what."""

    @property
    def succeeded(self) -> float:
        """The weight of those that succeeded."""

    @property
    def failed(self) -> float:
        """The weight of those that failed."""


class LiveView:
    """Implements `AgentDirectory`. Declarations are replaced as one value, so a reader never sees half."""

    def __init__(self, *, rules: LivenessRules, clock: Clock, success: SuccessRules | None = None) -> None:
        self._rules = rules
        self._clock = clock
        self._catalog = EMPTY
        self.hearing = Hearing(clock, rules.suspect_after_s)
        self.roster = Roster(rules=rules, hearing=self.hearing)
        self._window = SuccessWindow(success or SuccessRules())
        self._open: dict[AgentId, int] = {}
        self._total_open = 0
        """Their sum, which every request asks for."""
        self._since: Counter[AgentId] = Counter()
        """Attempts opened here since the last count of the ledger began."""

    @property
    def version(self) -> int:
        """The registry version the declarations are from."""
        return self._catalog.version

    @property
    def contracts(self) -> Mapping[Capability, CapabilityContract]:
        """The schemas of every capability that somebody declares."""
        return self._catalog.contracts

    def agents(self) -> Sequence[Agent]:
        """Every registered agent, by agent id."""
        return tuple(self._catalog.agents.values())

    def agent(self, agent_id: AgentId) -> Agent | None:
        """One agent's declaration, None where it is not registered."""
        return self._catalog.agents.get(agent_id)

    def group(self, capability: Capability) -> Sequence[Agent]:
        """Every registered agent that declares the capability, up or not, by agent id."""
        return self._catalog.groups.get(capability, ())

    def instances(self, agent_id: AgentId) -> Sequence[Observation]:
        """What was seen of each of the agent's instances, by instance name."""
        return self.roster.of(agent_id)

    def age_s(self, observation: Observation) -> float:
        """Seconds since that instance's last sign of life, without those in which none was heard."""
        return self.hearing.monotonic() - observation.seen_at

    def liveness(self, observation: Observation) -> Liveness:
        """What that age says."""
        return liveness(self.age_s(observation), self._rules)

    def status(self, agent_id: AgentId) -> AgentStatus:
        """What is known of the agent now; OFFLINE with capacity 0 for an unknown one."""
        agent = self._catalog.agents.get(agent_id)
        if agent is None:
            return _UNKNOWN
        return self.roster.summary(agent_id).status(
            max_load=agent.declaration.max_load, attempts_open=self._open.get(agent_id, 0)
        )

    def capacity(self, agent_id: AgentId) -> int:
        """How many tasks the agent's live, not draining instances run at once."""
        agent = self._catalog.agents.get(agent_id)
        return 0 if agent is None else agent.declaration.max_load * self.roster.summary(agent_id).at_work

    def has_room(self, agent_id: AgentId) -> bool:
        """Whether the agent's live instances take another task at once; never sure where it has a pace."""
        status = self.status(agent_id)
        return status.running < status.capacity and self.pace(agent_id) is None

    def has_waiting(self, agent_id: AgentId) -> bool:
        """Whether more attempts are open at the agent than its live instances run at once."""
        return self.open_at(agent_id) > self.capacity(agent_id)

    def open_at(self, agent_id: AgentId) -> int:
        """Attempts open at the agent."""
        return self._open.get(agent_id, 0)

    def total_open(self) -> int:
        """Attempts open in the ledger, at all agents."""
        return self._total_open

    def pace(self, agent_id: AgentId) -> float | None:
        """Tasks the agent takes in any second (`max_qps`); None for one without such a limit."""
        agent = self._catalog.agents.get(agent_id)
        return None if agent is None else agent.declaration.max_qps

    def idle_agents(self) -> Sequence[AgentId]:
        """Agents that are alive and of whose instances none reports a running task, by agent id.

        Not those with an instance that has just begun: what others left comes to it first. None of
        them while heartbeats can't be heard: they may be busy by now.
        """
        if self.hearing.is_down:
            return ()
        return tuple(agent_id for agent_id in self._catalog.agents if self._is_idle(agent_id))

    def _is_idle(self, agent_id: AgentId) -> bool:
        seen = self.roster.of(agent_id)
        alive = [one for one in seen if self.liveness(one) is Liveness.ALIVE]
        rests = bool(alive) and not any(one.running for one in seen)
        return rests and all(map(self._is_settled, alive))

    def _is_settled(self, observation: Observation) -> bool:
        """Whether it is here for two heartbeats: until then the broker may bring it what others left."""
        return self.hearing.monotonic() - observation.since >= 2 * self._rules.heartbeat_s

    def success(self, agent_id: AgentId, capability: Capability) -> float:
        """Shrunk, decayed success estimate in [0, 1]."""
        return self._window.estimate(agent_id, capability, self._clock.monotonic())

    def record_outcome(self, agent_id: AgentId, capability: Capability, *, succeeded: bool) -> None:
        """Count one ended attempt of a registered agent."""
        if agent_id in self._catalog.agents:
            self._window.record(agent_id, capability, succeeded=succeeded, now=self._clock.monotonic())

    def seed_outcomes(self, counts: Iterable[OutcomeCounts]) -> None:
        """Replace what is known of these pairs by counts that are already decayed to now."""
        now = self._clock.monotonic()
        for count in counts:
            outcomes = Outcomes(succeeded=count.succeeded, failed=count.failed, at=now)
            self._window.put(count.agent_id, count.capability, outcomes)

    def begin_count(self) -> None:
        """The ledger is being asked for the numbers that `set_open` gets."""
        self._since = Counter()

    def set_open(self, attempts: Mapping[AgentId, int]) -> None:
        """These numbers of attempts are open in the ledger; agents left out have none.

        What was opened here since `begin_count` comes on top: the count may not have seen it. One
        that it did see counts double until the next count, which keeps an agent from being overrun.
        """
        self._open = {
            agent: attempts.get(agent, 0) + self._since[agent] for agent in {*attempts, *self._since}
        }
        self._total_open = sum(self._open.values())

    def add_open(self, agent_id: AgentId, delta: int) -> None:
        """Correct one agent's number until the ledger is asked again; never below 0."""
        before = self._open.get(agent_id, 0)
        after = self._open[agent_id] = max(before + delta, 0)
        self._total_open += after - before
        if delta > 0:
            self._since[agent_id] += delta

    def snapshot(self) -> RegistrySnapshot:
        """Everything registered, as last stored."""
        return RegistrySnapshot(
            version=self._catalog.version,
            agents=tuple(self._catalog.agents.values()),
            instances=self.roster.rows(),
            contracts=tuple(self._catalog.contracts.values()),
        )

    def apply(self, snapshot: RegistrySnapshot) -> None:
        """Exactly this is registered now; heartbeats of known leases and outcomes stay."""
        gone = self._catalog.agents.keys() - {agent.agent_id for agent in snapshot.agents}
        self._catalog = build_catalog(snapshot.version, snapshot.agents, snapshot.contracts)
        self.roster.replace_all(snapshot.instances)
        for agent_id in gone:
            self._window.forget(agent_id)

    def put(
        self, agent: Agent, instance: Instance, contracts: Iterable[CapabilityContract], version: int
    ) -> None:
        """One instance registered, and the registry then had this version."""
        if version != self._catalog.version:
            self._catalog = with_agent(self._catalog, version, agent, contracts)
        self.roster.put(instance)

    def forget(self, agent_id: AgentId) -> None:
        """The agent was removed: nothing of it is left."""
        self._catalog = without_agent(self._catalog, agent_id)
        self.roster.forget(agent_id)
        self._window.forget(agent_id)
        self._total_open -= self._open.pop(agent_id, 0)
