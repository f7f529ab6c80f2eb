"""What is declared at one version of the registry: an immutable value, replaced as a whole."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent
from dispatcher.registry.repository import CapabilityContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Agents by id, the group of each capability by agent id, and the capabilities' contracts."""

    version: int
    agents: Mapping[AgentId, Agent]
    groups: Mapping[Capability, tuple[Agent, ...]]
    contracts: Mapping[Capability, CapabilityContract]


EMPTY = Catalog(
    version=0, agents=MappingProxyType({}), groups=MappingProxyType({}), contracts=MappingProxyType({})
)


def build_catalog(version: int, agents: Iterable[Agent], contracts: Iterable[CapabilityContract]) -> Catalog:
    """A catalog in which each contract's `declared_by` is what the agents say.

    Contracts that nobody declares are left out: the next registrant sets them anew.
    """
    by_id = {agent.agent_id: agent for agent in sorted(agents, key=lambda agent: agent.agent_id)}
    groups: defaultdict[Capability, list[Agent]] = defaultdict(list)
    for agent in by_id.values():
        for declared in agent.declaration.capabilities:
            groups[Capability(declared.name)].append(agent)
    shared = {
        contract.capability: replace(
            contract, declared_by=frozenset(agent.agent_id for agent in groups[contract.capability])
        )
        for contract in contracts
        if contract.capability in groups
    }
    return Catalog(
        version=version,
        agents=MappingProxyType(by_id),
        groups=MappingProxyType({capability: tuple(group) for capability, group in groups.items()}),
        contracts=MappingProxyType(shared),
    )


def with_agent(
    catalog: Catalog, version: int, agent: Agent, contracts: Iterable[CapabilityContract]
) -> Catalog:
    """The catalog after one agent registered and set these contracts."""
    set_now = {contract.capability: contract for contract in contracts}
    return build_catalog(
        version,
        ({**catalog.agents, agent.agent_id: agent}).values(),
        ({**catalog.contracts, **set_now}).values(),
    )


def without_agent(catalog: Catalog, agent_id: AgentId) -> Catalog:
    """The catalog after one agent was removed, still under its old version."""
    left = [agent for agent in catalog.agents.values() if agent.agent_id != agent_id]
    return build_catalog(catalog.version, left, catalog.contracts.values())
