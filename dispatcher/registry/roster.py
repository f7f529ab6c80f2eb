"""The instances of all agents and their heartbeats, aged by the time in which they could be heard."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from dispatcher.identifiers import AgentId, InstanceId, LeaseId
from dispatcher.protocol.frames import HeartbeatFrame
from dispatcher.registry.agent import Instance, LivenessRules
from dispatcher.registry.hearing import Hearing
from dispatcher.registry.observation import Observation, Summary, observe, summarise

_Leases = Mapping[LeaseId, Observation]
_NONE: _Leases = MappingProxyType({})


class Roster:
    """One observation per lease; the stored rows decide which leases there are."""

    def __init__(self, *, rules: LivenessRules, hearing: Hearing) -> None:
        self._rules = rules
        self._hearing = hearing
        self._agents: dict[AgentId, _Leases] = {}
        """A mapping of leases is never changed, but replaced."""
        self._summaries: dict[AgentId, tuple[_Leases, Summary]] = {}
        """Of the agents in `_agents`, each with the leases that it was made from."""
        self._heard: set[InstanceId] = set()

    def of(self, agent_id: AgentId) -> Sequence[Observation]:
        """The agent's observations by instance name."""
        return sorted(self._agents.get(agent_id, _NONE).values(), key=lambda one: one.instance.name)

    def summary(self, agent_id: AgentId) -> Summary:
        """What the agent's instances come to now; made anew only where it can have changed."""
        leases, now = self._agents.get(agent_id, _NONE), self._hearing.monotonic()
        made = self._summaries.get(agent_id)
        if made is not None and made[0] is leases and now < made[1].ends_at:
            return made[1]
        summary = summarise(leases.values(), now=now, rules=self._rules)
        if leases is not _NONE:
            self._summaries[agent_id] = leases, summary
        return summary

    def rows(self) -> tuple[Instance, ...]:
        """Every instance as it was last stored."""
        return tuple(one.instance for leases in self._agents.values() for one in leases.values())

    def aged(self, rows: Iterable[Instance]) -> tuple[Instance, ...]:
        """The rows, none older than its lease is known to be here: stored ages go on while nobody hears."""
        return tuple(replace(row, seen_age_s=min(row.seen_age_s, self._age_s(row))) for row in rows)

    def replace_all(self, rows: Iterable[Instance]) -> None:
        """Exactly these instances are there now; heartbeats of known leases stay."""
        agents: dict[AgentId, dict[LeaseId, Observation]] = {}
        for row in rows:
            agents.setdefault(row.agent_id, {})[row.lease_id] = self._observed(row)
        before, self._agents = self._agents, {**agents}
        self._summaries = {
            agent_id: (agents[agent_id], summary)
            for agent_id, (leases, summary) in self._summaries.items()
            if agent_id in agents and leases is before.get(agent_id) and _alike(leases, agents[agent_id])
        }

    def replace(self, agent_id: AgentId, rows: Iterable[Instance]) -> None:
        """Exactly these instances of one agent are there now."""
        self._agents[agent_id] = {row.lease_id: self._observed(row) for row in rows}

    def put(self, instance: Instance) -> None:
        """A new lease, alive now; it takes the place of an older one of the same instance name."""
        leases = self._agents.get(instance.agent_id, _NONE)
        kept = {lease: one for lease, one in leases.items() if one.instance.name != instance.name}
        now = self._hearing.monotonic()
        seen = Observation(instance=instance, since=now, seen_at=now)
        self._agents[instance.agent_id] = {**kept, instance.lease_id: seen}

    def drop(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        """The lease ended."""
        leases = self._agents.get(agent_id, _NONE)
        if lease_id in leases:
            self._agents[agent_id] = {lease: one for lease, one in leases.items() if lease != lease_id}

    def forget(self, agent_id: AgentId) -> None:
        """The agent was removed."""
        self._agents.pop(agent_id, None)
        self._summaries.pop(agent_id, None)

    def beat(self, frame: HeartbeatFrame) -> bool:
        """Take in a heartbeat; False where its lease is not known here."""
        leases = self._agents.get(AgentId(frame.agent_id), _NONE)
        known = leases.get(LeaseId(frame.lease_id))
        if known is None or known.instance.instance_id != frame.instance_id:
            return False
        heard = replace(known, seen_at=self._hearing.monotonic(), heartbeat=frame)
        self._agents[known.instance.agent_id] = {**leases, known.instance.lease_id: heard}
        self._heard.add(known.instance.instance_id)
        return True

    def heard(self) -> frozenset[InstanceId]:
        """Instances whose heartbeats arrived and were not yet recorded."""
        return frozenset(self._heard)

    def recorded(self, instances: frozenset[InstanceId]) -> None:
        """The signs of life of these instances are stored."""
        self._heard -= instances

    def _age_s(self, row: Instance) -> float:
        return self._hearing.monotonic() - self._observed(row).seen_at

    def _observed(self, row: Instance) -> Observation:
        known = self._agents.get(row.agent_id, _NONE).get(row.lease_id)
        return observe(known, row, self._hearing.monotonic(), self._rules)


def _alike(some: _Leases, others: _Leases) -> bool:
    """Whether both come to the same: all but how old a stored row was when it was read."""
    return some.keys() == others.keys() and all(
        _said(one) == _said(others[lease]) for lease, one in some.items()
    )


def _said(one: Observation) -> tuple[float, HeartbeatFrame | None, bool]:
    return one.seen_at, one.heartbeat, one.instance.draining
