"""What people and the API are told about an agent: its declaration and, beside it, what was observed."""

from collections.abc import Mapping
from dataclasses import dataclass

from dispatcher.identifiers import Capability, InstanceId
from dispatcher.registry.agent import Agent, AgentStatus, InboxKind, Liveness
from dispatcher.registry.observation import Observation
from dispatcher.registry.view import LiveView


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceDescription:
    """One instance at one moment; its lease is not told. `age_s` since its last sign of life."""

    name: str
    instance_id: InstanceId
    inbox: InboxKind
    liveness: Liveness
    draining: bool
    age_s: float
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDescription:
    """One agent at one moment. `success` is the estimate per capability, in [0, 1]."""

    agent: Agent
    status: AgentStatus
    success: Mapping[Capability, float]
    instances: tuple[InstanceDescription, ...]


def describe_agent(view: LiveView, agent: Agent) -> AgentDescription:
    """Put together what the view knows of one agent."""
    names = (Capability(declared.name) for declared in agent.declaration.capabilities)
    return AgentDescription(
        agent=agent,
        status=view.status(agent.agent_id),
        success={name: view.success(agent.agent_id, name) for name in names},
        instances=tuple(_describe(view, one) for one in view.instances(agent.agent_id)),
    )


def _describe(view: LiveView, observation: Observation) -> InstanceDescription:
    instance = observation.instance
    return InstanceDescription(
        name=instance.name,
        instance_id=instance.instance_id,
        inbox=instance.inbox,
        liveness=view.liveness(observation),
        draining=instance.draining,
        age_s=view.age_s(observation),
        running=observation.running,
    )
