"""Hand-written registry of two agents."""

from collections.abc import Sequence

from dispatcher.errors import RegistrationError
from dispatcher.identifiers import AgentId, Capability, InstanceId, LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.frames import HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.registry.agent import Agent, AgentStatus, InboxKind, Liveness
from dispatcher.registry.description import AgentDescription, InstanceDescription

ORDER = Capability("order.query")


def description(agent_id: str = "order") -> AgentDescription:
    """A live agent with one capability and one instance."""
    declaration = Declaration.model_validate(
        {"capabilities": [{"name": "order.query", "descriptions": ["Says where an order is."]}]}
    )
    agent = Agent(agent_id=AgentId(agent_id), declaration=declaration, digest="d1", environment="production")
    instance = InstanceDescription(
        name="host-1",
        instance_id=InstanceId("i1"),
        inbox=InboxKind.SQLITE,
        liveness=Liveness.ALIVE,
        draining=False,
        age_s=0.5,
        running=2,
    )
    status = AgentStatus(liveness=Liveness.ALIVE, capacity=8, running=2, draining=False)
    return AgentDescription(agent=agent, status=status, success={ORDER: 0.8}, instances=(instance,))


class StubRegistrar:
    """Knows the agent `order`; keeps what it was told; `failure` is raised instead."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.told: list[object] = []
        self.clients: list[str | None] = []

    async def register(self, frame: RegisterFrame, *, client: str | None = None) -> RegisteredFrame:
        self._note(frame)
        self.clients.append(client)
        return RegisteredFrame(
            agent_id=frame.agent_id,
            instance_id=frame.instance_id,
            lease_id="l1",
            heartbeat_ms=5_000,
            offline_after_ms=45_000,
            declaration_digest="d1",
        )

    async def heartbeat_checked(self, frame: HeartbeatFrame) -> None:
        self._note(frame)

    async def drain(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        self._note(("drain", agent_id, lease_id))

    async def leave(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        self._note(("leave", agent_id, lease_id))

    async def remove(self, agent_id: AgentId) -> None:
        if self.describe_one(agent_id) is None:
            raise RegistrationError("no agent of that id is registered", code="unknown_agent")
        self._note(("remove", agent_id))

    def describe(self) -> Sequence[AgentDescription]:
        return [description("faq"), description("order")]

    def describe_one(self, agent_id: AgentId) -> AgentDescription | None:
        return description() if agent_id == "order" else None

    def _note(self, what: object) -> None:
        if self.failure is not None:
            raise self.failure
        self.told.append(what)
