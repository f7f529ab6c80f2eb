"""What the registry needs to keep: the contract that a store fulfils.

Every method is atomic and durable when it returns. Times are the database's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.registry.agent import Agent, Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityContract:
    """The schemas of a capability, set by its first registrant and shared by its group."""

    capability: Capability
    input_schema: dict[str, object]
    output_schema: dict[str, object]
    declared_by: frozenset[AgentId] = frozenset()
    """The agents that declare it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySnapshot:
    """Everything registered at one version; the version rises with every change of a declaration."""

    version: int
    agents: tuple[Agent, ...]
    instances: tuple[Instance, ...]
    contracts: tuple[CapabilityContract, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a registration was checked against: the registry's version and the agent's leases.

    Those of them that are `silent` were for `silent_s` seconds; they end with the registration.
    """

    version: int
    leases: frozenset[LeaseId]
    silent: frozenset[LeaseId] = frozenset()
    silent_s: float = 0.0


class AgentRepository(Protocol):
    """Agents, their instances, leases and the schemas of their capabilities."""

    async def load(self) -> RegistrySnapshot:
        """All agents, instances and contracts, consistent with one another."""
        ...

    async def version(self) -> int:
        """The registry's version alone; cheap enough to ask every second."""
        ...

    async def instances(self, agent_id: AgentId | None = None) -> tuple[Instance, ...]:
        """The instances of one agent, or of all: one short query, asked every second by every replica."""
        ...

    async def save(
        self, agent: Agent, instance: Instance, contracts: Sequence[CapabilityContract], basis: Basis
    ) -> int | None:
        """Register one instance and return the registry's version; None, and nothing, if `basis` is over.

        Of two registrations with one basis only one is stored, wherever they come in. Replaces the
        agent's row and raises the version only if the digest differs from the stored one; replaces
        an older instance of the same name, and its lease, and ends the silent ones in the same
        transaction; a sign of life of one of these since the check means that the basis is over.
        `contracts` are written for the capabilities given, others are left alone.
        """
        ...

    async def touch(self, instances: Sequence[InstanceId]) -> None:
        """Record a sign of life, now, for each instance that still has its lease."""
        ...

    async def set_draining(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        """Mark the lease's instance as draining; False where that lease is not the current one."""
        ...

    async def remove_instance(self, agent_id: AgentId, lease_id: LeaseId) -> bool:
        """End a lease; False where it is not the current one. The agent stays registered."""
        ...

    async def remove_agent(self, agent_id: AgentId) -> bool:
        """Remove agent, instances and leases, and contracts nobody declares any more; False if unknown."""
        ...
