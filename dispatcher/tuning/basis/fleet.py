"""A data set's agents as a fresh registry: real declarations in a live view whose time stands still."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent, InboxKind, Instance, LivenessRules
from dispatcher.registry.declaration import check_declaration, declared_agent
from dispatcher.registry.repository import CapabilityContract, RegistrySnapshot
from dispatcher.registry.success import SuccessRules
from dispatcher.registry.view import LiveView
from dispatcher.tuning.basis.rows import AgentRow

ENVIRONMENT = "production"
MAX_LOAD = 10_000
"""Tasks that each agent runs at once: loads may be any share, as finely as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Agents to register, and which of the data set's capabilities each registered one stands for."""

    agents: tuple[Agent, ...]
    stands_for: Mapping[Capability, Capability]


class StandingStill:
    """Implements `dispatcher.clock.Clock`: nobody grows silent while a long run is measured."""

    def monotonic(self) -> float:
        """Always the same second."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Return at once."""
        del seconds


def fleet(rows: Mapping[Capability, AgentRow], *, replicas: int = 1, twins: int = 0) -> Fleet:
    """`replicas` agents of each capability, and for the first `twins` one more under another name.

    Raises RegistrationError as a registration would, ConfigurationError at what no declaration can hold.
    """
    agents: list[Agent] = []
    stands_for: dict[Capability, Capability] = {}
    for place, (capability, row) in enumerate(rows.items()):
        stands_for[capability] = capability
        agents += (_agent(f"agent-{place}-{number}", capability, row) for number in range(replicas))
        if place < twins:
            twin = Capability(f"{capability[:52]}.{place}.twin")
            stands_for[twin] = capability
            agents.append(_agent(f"agent-{place}-twin", twin, row))
    return Fleet(agents=tuple(agents), stands_for=stands_for)


def live_view(agents: Sequence[Agent]) -> LiveView:
    """The agents as registered: one instance each, alive and idle."""
    success = SuccessRules(max_entries=max(100_000, len(agents)))
    view = LiveView(rules=LivenessRules(), clock=StandingStill(), success=success)
    view.apply(
        RegistrySnapshot(
            version=1,
            agents=tuple(agents),
            instances=tuple(_instance(agent.agent_id) for agent in agents),
            contracts=tuple(_contracts(agents)),
        )
    )
    return view


def _agent(agent_id: str, capability: Capability, row: AgentRow) -> Agent:
    try:
        declared = CapabilityDeclaration(
            name=capability, descriptions=list(row.descriptions), examples=list(row.examples)
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{capability!r} can't be declared: {where}: {first['msg']}") from None
    declaration = Declaration(capabilities=[declared], max_load=MAX_LOAD)
    check_declaration(declaration)
    return declared_agent(AgentId(agent_id), declaration, ENVIRONMENT)


def _instance(agent_id: AgentId) -> Instance:
    return Instance(
        agent_id=agent_id,
        name="only",
        instance_id=InstanceId(f"{agent_id}.instance"),
        lease_id=LeaseId(f"{agent_id}.lease"),
        inbox=InboxKind.MEMORY,
    )


def _contracts(agents: Iterable[Agent]) -> Iterable[CapabilityContract]:
    names = dict.fromkeys(one.name for agent in agents for one in agent.declaration.capabilities)
    return (
        CapabilityContract(capability=Capability(name), input_schema={}, output_schema={}) for name in names
    )
