"""Candidates and keys as tests know them."""

from dataclasses import dataclass, field, replace

from dispatcher.dispatch.route_query import DirectWay, RouteCandidate, RouteList
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.direct import DirectKey, DirectKeys
from dispatcher.registry.access import Identity

KNOWN = Capability("order.query")


@dataclass
class StubRoutes:
    """Knows one capability, and the keys of the agent `order`; keeps what it was asked."""

    asked: list[tuple[Capability, str]] = field(default_factory=list)

    async def ask(self, capability: Capability, environment: str, identity: Identity) -> RouteList | None:
        self.asked.append((capability, environment))
        return route_list(identity.subject) if capability == KNOWN and identity.allows(KNOWN) else None

    async def keys(self, agent_id: AgentId) -> DirectKeys | None:
        keys = [DirectKey(key_id=str(epoch), secret="ab" * 32) for epoch in (7, 8)]
        return DirectKeys(agent_id=agent_id, keys=keys, renew_in_s=60) if agent_id == "order" else None


def route_list(caller: str) -> RouteList:
    """Two candidates; the first may be called directly."""
    first = RouteCandidate(
        agent_id=AgentId("order"),
        score=0.94,
        p95_ms=120.5,
        running=2,
        capacity=8,
        throttled=False,
        idempotent=True,
        timeout_ms=30_000,
        direct=DirectWay(endpoint="http://order.example/tasks", ticket="7.aa", expires_in_s=900.0),
    )
    second = replace(first, agent_id=AgentId("order-two"), p95_ms=None, throttled=True, direct=None)
    return RouteList(
        capability=KNOWN,
        caller=caller,
        expires_in_s=5.0,
        retry_after_ms=437,
        throttled=False,
        inputs=("order_number",),
        candidates=(first, second),
    )
