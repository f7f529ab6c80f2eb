"""Several channels as one: each task goes the way its agent declared."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from dispatcher.channel.channel import Channel, Inbound
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import CancelFrame, TaskFrame


class TaskChannel(Protocol):
    """The parts of a `Channel` that reaching agents needs."""

    def open(self, inbound: Inbound) -> AbstractAsyncContextManager[None]:
        """As `Channel.open`; only `on_result` is called."""
        ...

    async def prepare(self, agent_id: AgentId) -> None:
        """As `Channel.prepare`."""
        ...

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """As `Channel.send`."""
        ...

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """As `Channel.cancel`."""
        ...


class CompositeChannel:
    """Implements `channel.Channel`: `others` by the name agents declare, `primary` for all else.

    `channel_of` gives the channel that an agent declared, None for an agent that is not known.
    """

    def __init__(
        self,
        primary: Channel,
        others: Mapping[str, TaskChannel],
        channel_of: Callable[[AgentId], str | None],
    ) -> None:
        self._primary = primary
        self._others = dict(others)
        self._channel_of = channel_of

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Open the primary first and close it last: results of the others may have to wake a replica."""
        async with AsyncExitStack() as stack:
            for channel in (self._primary, *self._others.values()):
                await stack.enter_async_context(channel.open(inbound))
            yield

    async def prepare(self, agent_id: AgentId) -> None:
        """Prepare the channel that the agent declared, by what is known of it."""
        await self.prepare_as(agent_id, self._channel_of(agent_id) or "")

    async def prepare_as(self, agent_id: AgentId, channel: str) -> None:
        """Prepare the channel of that name, which the agent is about to declare."""
        other = self._others.get(channel)
        await (self._primary if other is None else other).prepare(agent_id)

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """Send over the channel that the agent declared."""
        other = self._other(agent_id)
        if other is None:
            await self._primary.send(agent_id, task, bound=bound)
        else:
            await other.send(agent_id, task, bound=bound)

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """Over the channel that the agent declared."""
        other = self._other(agent_id)
        await (self._primary if other is None else other).cancel(agent_id, frame)

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """The primary's."""
        await self._primary.wake(replica_id, request_id)

    async def announce_registry_change(self) -> None:
        """The primary's."""
        await self._primary.announce_registry_change()

    def problem(self) -> str | None:
        """The primary's."""
        return self._primary.problem()

    def is_ready(self) -> bool:
        """The primary's: the others reach each agent or not, and say so at the send."""
        return self._primary.is_ready()

    def _other(self, agent_id: AgentId) -> TaskChannel | None:
        return self._others.get(self._channel_of(agent_id) or "")
