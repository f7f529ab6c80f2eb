"""All rules of a registration together: from a register frame to what has to be stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.frames import RegisterFrame
from dispatcher.registry.agent import Agent, InboxKind, Instance, LivenessRules
from dispatcher.registry.declaration import check_declaration, declared_agent
from dispatcher.registry.lease import check_lease
from dispatcher.registry.repository import CapabilityContract
from dispatcher.registry.schema import contracts_to_set

EVERY_CHANNEL = frozenset({"in-process", "rabbitmq", "http"})
HTTP = "http"


def _no_flaw(_endpoint: str, _client: str | None) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRules:
    """What the dispatcher is set up for, as far as a registration meets it."""

    liveness: LivenessRules
    default_environment: str
    channels: frozenset[str] = EVERY_CHANNEL
    """The channels on which this dispatcher reaches agents; what declares another one can't get tasks."""
    endpoint_flaw: Callable[[str, str | None], str | None] = _no_flaw
    """Why an endpoint, registered by that client, must not be called; asked again whenever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An instance that may register, and what is written for it in one transaction."""

    agent: Agent
    instance: Instance
    contracts: tuple[CapabilityContract, ...]
    ended: frozenset[LeaseId] = frozenset()
    """The leases that end with it, all of them of instances that are OFFLINE."""


def admit(
    frame: RegisterFrame,
    *,
    lease_id: LeaseId,
    others: Sequence[Instance],
    contracts: Mapping[Capability, CapabilityContract],
    rules: AdmissionRules,
    client: str | None = None,
) -> Admission:
    """Apply every rule; `others` are the stored instances, `client` is as in `Registrar.register`.

    A declaration that differs from the stored one replaces it for all instances, so that a
    rolling upgrade works.

    Raises:
        RegistrationError: The first rule that was broken.
    """
    agent_id, declaration = AgentId(frame.agent_id), frame.declaration
    check_declaration(declaration)
    _check_channel(declaration, rules.channels)
    _check_endpoint(declaration, rules, client)
    instance = Instance(
        agent_id=agent_id,
        name=frame.instance_name,
        instance_id=InstanceId(frame.instance_id),
        lease_id=lease_id,
        inbox=InboxKind(frame.inbox),
        inbox_id=frame.inbox_id,
    )
    ended = check_lease(instance, declaration, others, rules.liveness)
    agent = declared_agent(agent_id, declaration, rules.default_environment)
    return Admission(
        agent=agent,
        instance=instance,
        contracts=contracts_to_set(agent_id, declaration, contracts),
        ended=ended,
    )


def _check_channel(declaration: Declaration, channels: frozenset[str]) -> None:
    if declaration.channel not in channels:
        raise RegistrationError(
            f"this dispatcher reaches agents over {' and '.join(sorted(channels))} only",
            code="channel_unavailable",
            fields=("channel",),
        )


def _check_endpoint(declaration: Declaration, rules: AdmissionRules, client: str | None) -> None:
    is_needed, endpoint = declaration.channel == HTTP, declaration.endpoint
    if is_needed != (endpoint is not None):
        raise RegistrationError(
            "an endpoint belongs to the channel http, and that channel needs one",
            code="endpoint_mismatch",
            fields=("endpoint",),
        )
    if endpoint is not None and (flaw := rules.endpoint_flaw(endpoint, client)):
        raise RegistrationError(f"the endpoint {flaw}", code="endpoint_refused", fields=("endpoint",))
