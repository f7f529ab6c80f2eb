"""Agents as the registry knows them: the declared document and, apart from it, what was observed."""

from dataclasses import dataclass
from enum import StrEnum

from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A registered agent: its declaration and the digest that tells whether it changed."""

    agent_id: AgentId
    declaration: Declaration
    digest: str
    environment: str
    """The declared environment, or the dispatcher's default where none was declared."""

    def capability(self, name: Capability) -> CapabilityDeclaration | None:
        """The declaration of one capability, None where the agent doesn't have it."""
        return next((c for c in self.declaration.capabilities if c.name == name), None)


class InboxKind(StrEnum):
    """Where an instance remembers which tasks it has seen; private ones allow one instance only."""

    MEMORY = "memory"
    SQLITE = "sqlite"
    POSTGRES = "postgres"

    @property
    def is_private(self) -> bool:
        """Only a shared inbox can keep two instances from running one task twice (I2)."""
        return self is not InboxKind.POSTGRES


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One running process of an agent with its lease.

    `name` is stable over restarts, `instance_id` is new at every start. `inbox_id` tells one
    inbox from another of its kind; None where the instance didn't say.
    """

    agent_id: AgentId
    name: str
    instance_id: InstanceId
    lease_id: LeaseId
    inbox: InboxKind
    inbox_id: str | None = None
    draining: bool = False
    seen_age_s: float = 0.0
    """Seconds since the last sign of life, by the database's clock, when the row was read."""


class Liveness(StrEnum):
    """What the age of an instance's last heartbeat says."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessRules:
    """Ages in seconds; defaults are the preset 5 / 15 / 45 of requirement A4."""

    heartbeat_s: float = 5.0
    suspect_after_s: float = 15.0
    offline_after_s: float = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """What was observed of an agent, summed over its live instances, at one moment.

    `liveness` is that of its best instance. `capacity` is `max_load` times live, not draining instances.
    `running` is the larger of the number that live instances reported and the attempts open in our ledger.
    `draining` means that all live ones are.
    """

    liveness: Liveness
    capacity: int
    running: int
    draining: bool

    @property
    def load(self) -> float:
        """The share of `capacity` in use; 1 where nothing is left to run it."""
        return self.running / self.capacity if self.capacity else 1.0
