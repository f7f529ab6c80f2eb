"""All rules of a registration together: from a register frame to what has to be stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.frames import RegisterFrame
from dispatcher.registry.agent import Agent, InboxKind, Instance, LivenessRules
from dispatcher.registry.declaration import check_declaration, declared_agent
from dispatcher.registry.lease import check_lease
from dispatcher.registry.repository import CapabilityContract
from dispatcher.registry.schema import contracts_to_set


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An instance that may register, and what is written for it in one transaction."""

    agent: Agent
    instance: Instance
    contracts: tuple[CapabilityContract, ...]


def admit(
    frame: RegisterFrame,
    *,
    lease_id: LeaseId,
    others: Sequence[Instance],
    contracts: Mapping[Capability, CapabilityContract],
    default_environment: str,
    rules: LivenessRules,
) -> Admission:
    """Apply every rule; `others` are the stored instances.

    A declaration that differs from the stored one replaces it for all instances, so that a
    rolling upgrade works.

    Raises:
        RegistrationError: The first rule that was broken.
    """
    agent_id, declaration = AgentId(frame.agent_id), frame.declaration
    if "\x00" in frame.instance_id:
        raise RegistrationError("the instance_id holds a NUL character", code="unstorable_text")
    check_declaration(declaration)
    instance = Instance(
        agent_id=agent_id,
        name=frame.instance_name,
        instance_id=InstanceId(frame.instance_id),
        lease_id=lease_id,
        inbox=InboxKind(frame.inbox),
    )
    check_lease(instance, declaration, others, rules)
    agent = declared_agent(agent_id, declaration, default_environment)
    return Admission(
        agent=agent, instance=instance, contracts=contracts_to_set(agent_id, declaration, contracts)
    )
