"""A registry of any size: five agents of each capability, each described in its own words."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice, product

from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent, AgentStatus, Liveness

VERBS = ("track", "cancel", "return", "repair", "rate", "insure", "gift-wrap", "compare", "reorder", "donate")
THINGS = (
    *("parcel", "phone", "laptop", "coat", "bicycle", "sofa", "camera", "kettle", "ticket", "watch"),
    *("lamp", "tent", "piano", "carpet", "drill", "stroller", "printer", "ring", "helmet", "fridge"),
)
KINDS = ("new", "used", "rented", "broken", "lost", "gifted", "leased", "imported", "recalled", "custom")
EACH = 5
LARGEST = len(VERBS) * len(THINGS) * len(KINDS) * EACH
IDLE = AgentStatus(liveness=Liveness.ALIVE, capacity=8, running=0, draining=False)


class AllIdle:
    """Implements `registry.live.AgentDirectory`: every agent is up and has nothing to do."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._groups: dict[str, list[Agent]] = defaultdict(list)
        for agent in agents:
            for capability in agent.declaration.capabilities:
                self._groups[capability.name].append(agent)

    def group(self, capability: Capability) -> Sequence[Agent]:
        """See `registry.live.AgentDirectory`."""
        return self._groups[capability]

    def status(self, agent_id: AgentId) -> AgentStatus:
        """See `registry.live.AgentDirectory`."""
        del agent_id
        return IDLE

    def success(self, agent_id: AgentId, capability: Capability) -> float:
        """See `registry.live.AgentDirectory`."""
        del agent_id, capability
        return 0.8


def fleet(size: int) -> list[Agent]:
    """The first `size` agents, at most LARGEST."""
    every = product(KINDS, VERBS, THINGS, range(EACH))
    return [_agent(kind, verb, thing, number) for kind, verb, thing, number in islice(every, size)]


def question(agent: Agent) -> str:
    """What someone asks who needs this agent; no agent has it among its examples."""
    kind, verb, thing = agent.declaration.capabilities[0].name.split(".")
    return f"could you {verb} my {kind} {thing}"


def _agent(kind: str, verb: str, thing: str, number: int) -> Agent:
    name = f"{kind}-{verb}-{thing}-{number}"
    capability = CapabilityDeclaration(
        name=f"{kind}.{verb}.{thing}",
        descriptions=[f"Shop {number} helps customers to {verb} a {kind} {thing}."],
        examples=[
            f"please {verb} my {kind} {thing}",
            f"how do I {verb} this {kind} {thing}?",
            f"{verb} the {kind} {thing} today",
        ],
    )
    declaration = Declaration(capabilities=[capability])
    return Agent(agent_id=AgentId(name), declaration=declaration, digest=name, environment="production")
