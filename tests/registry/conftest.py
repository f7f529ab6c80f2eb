"""A clock and a database that tests hold in their hands, and short ways to write frames."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from dispatcher.identifiers import AgentId, CallerId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.frames import HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.registry.access import AccessSnapshot, ApiKey
from dispatcher.registry.admission import AdmissionRules
from dispatcher.registry.agent import Agent, InboxKind, Instance, LivenessRules
from dispatcher.registry.registrar import Effects, Registrar
from dispatcher.registry.repository import Basis, CapabilityContract, RegistrySnapshot
from dispatcher.registry.view import LiveView


class FakeClock:
    """Time that moves only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class MemoryAgents:
    """An AgentRepository whose rows are dictionaries; `before_save` lets a test race a registration."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._version = 0
        self.agents: dict[AgentId, Agent] = {}
        self.rows: dict[tuple[AgentId, str], tuple[Instance, float]] = {}
        self.contracts: dict[Capability, CapabilityContract] = {}
        self.loads = 0
        self.touched: list[list[InstanceId]] = []
        self.before_save: Callable[[], Awaitable[object]] | None = None

    def backup(self) -> tuple[int, dict[AgentId, Agent]]:
        """What `restore` takes."""
        return self._version, dict(self.agents)

    def restore(self, backup: tuple[int, dict[AgentId, Agent]]) -> None:
        """As after the database was restored: version and agents are earlier ones."""
        self._version, self.agents = backup[0], dict(backup[1])

    async def load(self) -> RegistrySnapshot:
        self.loads += 1
        return RegistrySnapshot(
            version=self._version,
            agents=tuple(self.agents.values()),
            instances=await self.instances(),
            contracts=tuple(self.contracts.values()),
        )

    async def version(self) -> int:
        return self._version

    async def instances(self, agent_id: AgentId | None = None) -> tuple[Instance, ...]:
        return tuple(
            replace(row, seen_age_s=self._clock.now - seen)
            for row, seen in self.rows.values()
            if agent_id in (None, row.agent_id)
        )

    async def save(
        self, agent: Agent, instance: Instance, contracts: Sequence[CapabilityContract], basis: Basis
    ) -> int | None:
        if self.before_save is not None:
            race, self.before_save = self.before_save, None
            await race()
        if (basis.version, basis.leases) != (self._version, self._leases(agent.agent_id)):
            return None
        silent = {key: seen for key, (row, seen) in self.rows.items() if row.lease_id in basis.silent}
        if any(self._clock.now - seen < basis.silent_s for seen in silent.values()):
            return None
        for key in silent:
            del self.rows[key]
        known = self.agents.get(agent.agent_id)
        if known is None or known.digest != agent.digest:
            self.agents[agent.agent_id] = agent
            self._version += 1
        self.contracts |= {contract.capability: contract for contract in contracts}
        self.rows[agent.agent_id, instance.name] = (instance, self._clock.now)
        return self._version

    async def touch(self, instances: Sequence[InstanceId]) -> None:
        self.touched.append(list(instances))
        for key, (row, _) in self.rows.items():
            if row.instance_id in instances:
                self.rows[key] = (row, self._clock.now)

    async def set_draining(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        key = self._key(agent_id, lease_id)
        if key is None:
            return False
        row, seen = self.rows[key]
        self.rows[key] = (replace(row, draining=True), seen)
        return True

    async def remove_instance(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        key = self._key(agent_id, lease_id)
        return key is not None and self.rows.pop(key, None) is not None

    async def remove_agent(self, agent_id: AgentId) -> bool:
        if self.agents.pop(agent_id, None) is None:
            return False
        self.rows = {key: row for key, row in self.rows.items() if key[0] != agent_id}
        self._version += 1
        return True

    def _leases(self, agent_id: AgentId) -> frozenset[LeaseId]:
        return frozenset(row.lease_id for row, _ in self.rows.values() if row.agent_id == agent_id)

    def _key(self, agent_id: AgentId, lease_id: LeaseId) -> tuple[AgentId, str] | None:
        return next(
            (k for k, (row, _) in self.rows.items() if k[0] == agent_id and row.lease_id == lease_id), None
        )


class MemoryAccess:
    """An AccessRepository in two dictionaries."""

    def __init__(self) -> None:
        self.stored: dict[str, ApiKey] = {}
        self.granted: dict[CallerId, frozenset[Capability]] = {}

    async def load(self) -> AccessSnapshot:
        return AccessSnapshot(keys=tuple(self.stored.values()), grants=dict(self.granted))

    async def add_key(self, key: ApiKey) -> None:
        self.stored[key.key_id] = key

    async def keys(self) -> list[ApiKey]:
        return list(self.stored.values())

    async def revoke_key(self, key_id: str) -> bool:
        if key_id not in self.stored:
            return False
        self.stored[key_id] = replace(self.stored[key_id], revoked=True)
        return True

    async def grants(self, caller: CallerId) -> frozenset[Capability]:
        return self.granted.get(caller, frozenset())

    async def set_grants(self, caller: CallerId, capabilities: frozenset[Capability]) -> None:
        self.granted[caller] = capabilities


class Replica:
    """A registrar with its own view over a shared repository, and what followed from its changes."""

    def __init__(self, repository: MemoryAgents, clock: FakeClock, rules: LivenessRules) -> None:
        self.view = LiveView(rules=rules, clock=clock)
        self.snapshots: list[RegistrySnapshot] = []
        self.prepared: list[AgentId] = []
        self.announced = 0
        self.failure: Exception | None = None
        self.before_change: Callable[[], Awaitable[object]] | None = None
        self.examined: list[Agent] = []
        self.unreadable: Exception | None = None
        self.no_queue: Exception | None = None
        self.before_queue: Callable[[], Awaitable[object]] | None = None
        self.reached: list[tuple[str, str | None]] = []
        self.unreachable: Exception | None = None
        effects = Effects(
            on_change=self._on_change,
            examine=self._examine,
            prepare=self._prepare,
            announce=self._announce,
            reach=self._reach,
        )
        self.registrar = Registrar(
            repository=repository,
            view=self.view,
            rules=AdmissionRules(liveness=rules, default_environment="production"),
            effects=effects,
        )

    async def _examine(self, agent: Agent) -> None:
        self.examined.append(agent)
        if self.unreadable is not None:
            raise self.unreadable

    async def _on_change(self, snapshot: RegistrySnapshot) -> None:
        if self.before_change is not None:
            await self.before_change()
        if self.failure is not None:
            raise self.failure
        self.snapshots.append(snapshot)

    async def _prepare(self, agent_id: AgentId, _channel: str) -> None:
        if self.before_queue is not None:
            await self.before_queue()
        if self.no_queue is not None:
            raise self.no_queue
        self.prepared.append(agent_id)

    async def _reach(self, endpoint: str, client: str | None) -> None:
        self.reached.append((endpoint, client))
        if self.unreachable is not None:
            raise self.unreachable

    async def _announce(self) -> None:
        self.announced += 1


def _capability(name: str = "order.query", **fields: object) -> CapabilityDeclaration:
    texts = {"descriptions": ["Find an order"], "examples": [], "idempotent": True}
    return CapabilityDeclaration.model_validate({"name": name, **texts, **fields})


def _declaration(*capabilities: CapabilityDeclaration, **fields: object) -> Declaration:
    return Declaration.model_validate({"capabilities": list(capabilities) or [_capability()], **fields})


def _registration(
    agent_id: str = "order",
    declaration: Declaration | None = None,
    *,
    name: str = "one",
    instance_id: str | None = None,
    inbox: str = "postgres",
    inbox_id: str | None = None,
) -> RegisterFrame:
    return RegisterFrame.model_validate(
        {
            "agent_id": agent_id,
            "instance_name": name,
            "instance_id": instance_id or f"{agent_id}-{name}",
            "inbox": inbox,
            "inbox_id": inbox_id,
            "declaration": declaration or _declaration(),
        }
    )


def _beat(lease: RegisteredFrame, running: int = 0) -> HeartbeatFrame:
    return HeartbeatFrame(
        agent_id=lease.agent_id, instance_id=lease.instance_id, lease_id=lease.lease_id, running=running
    )


def _instance(
    name: str = "one", *, inbox: str = "postgres", age_s: float = 0.0, lease: str = "", draining: bool = False
) -> Instance:
    return Instance(
        agent_id=AgentId("order"),
        name=name,
        instance_id=InstanceId(f"order-{name}"),
        lease_id=LeaseId(lease or f"lease-{name}"),
        inbox=InboxKind(inbox),
        draining=draining,
        seen_age_s=age_s,
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def rules() -> LivenessRules:
    return LivenessRules()


@pytest.fixture
def repository(clock: FakeClock) -> MemoryAgents:
    return MemoryAgents(clock)


@pytest.fixture
def access() -> MemoryAccess:
    return MemoryAccess()


@pytest.fixture
def new_replica(repository: MemoryAgents, clock: FakeClock, rules: LivenessRules) -> Callable[[], Replica]:
    return lambda: Replica(repository, clock, rules)


@pytest.fixture
def replica(new_replica: Callable[[], Replica]) -> Replica:
    return new_replica()


@pytest.fixture
def capability() -> Callable[..., CapabilityDeclaration]:
    return _capability


@pytest.fixture
def declaration() -> Callable[..., Declaration]:
    return _declaration


@pytest.fixture
def registration() -> Callable[..., RegisterFrame]:
    return _registration


@pytest.fixture
def beat() -> Callable[..., HeartbeatFrame]:
    return _beat


@pytest.fixture
def instance() -> Callable[..., Instance]:
    return _instance
