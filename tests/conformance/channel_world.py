"""The world that the channel suite runs in: replicas, an agent's link, and the frames between them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from dispatcher.channel.channel import Channel, Dead, Inbound
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import TaskFrame, TaskPayload
from dispatcher.protocol.link import Delivery, Link, Settlement

DEADLINE_S = 30.0
ORDER = AgentId("order")
RESULT_TRIES = 3
"""How often a channel under test offers a result whose handling fails."""
Kept = TypeVar("Kept")
_numbers = count(1)
"""No two attempts have one token."""


def task(text: str, agent_id: AgentId = ORDER, *, budget_ms: int = 60_000) -> TaskFrame:
    """A task frame that can be told from others by its text."""
    return TaskFrame(
        request_id="request",
        task_id="task",
        attempt=1,
        idempotency_key="request:0",
        token=f"token-of-attempt-{next(_numbers):08}",
        agent_id=agent_id,
        capability="order.query",
        payload=TaskPayload(text=text),
        budget_ms=budget_ms,
        start_within_ms=budget_ms,
        reply_to="results",
    )


def frame_text(body: bytes) -> str:
    """The text of an encoded task frame."""
    return TaskFrame.model_validate_json(body).payload.text


def text_of(delivery: Delivery) -> str:
    """The text of a delivered task frame."""
    return frame_text(delivery.body)


@dataclass
class Recorder:
    """The dispatcher's side: keeps what arrives and settles results as told, else with ACK."""

    results: list[bytes] = field(default_factory=list)
    heartbeats: list[bytes] = field(default_factory=list)
    wakes: list[RequestId] = field(default_factory=list)
    registry_changes: int = 0
    dead: list[Dead] = field(default_factory=list)
    refused: int = 0
    """So many dead letters can't be kept at first."""
    answers: deque[Settlement | Exception] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def inbound(self) -> Inbound:
        """What the channel calls."""
        return Inbound(
            on_result=self._on_result,
            on_registry=self._on_registry,
            on_heartbeat=self._keep(self.heartbeats),
            on_wake=self._keep(self.wakes),
            on_registry_change=self._on_registry_change,
            on_dead=self._on_dead,
        )

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Wait until something that arrived made the condition true."""
        async with asyncio.timeout(DEADLINE_S):
            while not is_reached():
                self._changed.clear()
                await self._changed.wait()

    async def until_heartbeats(self, expected: list[bytes]) -> None:
        """Wait until exactly these heartbeats arrived."""
        await self.until(lambda: self.heartbeats == expected)

    async def until_registry_changes(self, count: int) -> None:
        """Wait until so many announcements arrived."""
        await self.until(lambda: self.registry_changes == count)

    async def _on_result(self, frame: bytes) -> Settlement:
        self._keep(self.results)(frame)
        answer = self.answers.popleft() if self.answers else Settlement.ACK
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _on_dead(self, dead: Dead) -> Settlement:
        self._keep(self.dead)(dead)
        self.refused -= 1
        return Settlement.REQUEUE if self.refused >= 0 else Settlement.ACK

    async def _on_registry(self, frame: bytes) -> bytes:
        return b"reply to " + frame

    def _on_registry_change(self) -> None:
        self.registry_changes += 1
        self._changed.set()

    def _keep(self, kept: list[Kept]) -> Callable[[Kept], None]:
        def keep(item: Kept) -> None:
            kept.append(item)
            self._changed.set()

        return keep


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One dispatcher and what it received."""

    replica_id: ReplicaId
    channel: Channel
    received: Recorder


@dataclass(frozen=True, kw_only=True)
class World:
    """Open replicas and an agent's link to them."""

    replicas: Sequence[Replica]
    link: Link

    @property
    def channel(self) -> Channel:
        """The first replica's."""
        return self.replicas[0].channel

    @property
    def received(self) -> Recorder:
        """What the first replica received."""
        return self.replicas[0].received


async def next_dead(world: World) -> Dead:
    """The only replica's next dead letter, within the deadline."""
    await world.received.until(lambda: bool(world.received.dead))
    return world.received.dead.pop(0)


@asynccontextmanager
async def consuming(link: Link, prefetch: int = 8) -> AsyncIterator[AsyncIterator[Delivery]]:
    """An instance of the agent."""
    async with link.deliveries(ORDER, prefetch) as deliveries:
        yield deliveries


async def following(deliveries: AsyncIterator[Delivery]) -> Delivery:
    """The next delivery, within the deadline."""
    async with asyncio.timeout(DEADLINE_S):
        return await anext(deliveries)
