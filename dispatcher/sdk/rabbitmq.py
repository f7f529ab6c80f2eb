"""An agent's link to its dispatcher over RabbitMQ.

The agent declares only its instance's own queue; all else belongs to the dispatcher and is
waited for.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection, ConnectionRules
from dispatcher.amqp.consumer import Consumer, Subscription
from dispatcher.amqp.declare import Queue
from dispatcher.amqp.layout import agent_exchanges, control_queue, instance_queue
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.amqp.settle import Received
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DeliveryError, OutcomeUnknownError
from dispatcher.identifiers import AgentId, InstanceId, new_id
from dispatcher.protocol.link import Delivery
from dispatcher.protocol.topology import REGISTRY_KEY, RESULTS_KEY, SIGNALS_KEY, Topology

log = logging.getLogger(__name__)

MAX_CONTROLS = 1_000
"""Control frames that wait here; the next one is lost, as control frames may be."""
_IN_HAND = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """Limits of the link; a registry frame is answered within `reply_timeout_s` or not at all."""

    connection: ConnectionRules = DEFAULT_RULES
    reply_timeout_s: float = 10.0


class RabbitLink:
    """Implements `protocol.link.Link`; an async context manager that connects in the background."""

    def __init__(
        self,
        url: str,
        topology: Topology,
        instance_id: InstanceId,
        *,
        rules: LinkRules | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._topology = topology
        self._instance_id = instance_id
        self._rules = rules or LinkRules()
        ticking = clock or SystemClock()
        self._out = Connection(url, f"{instance_id} publishes", self._rules.connection, ticking)
        self._in = Connection(url, f"{instance_id} consumes", self._rules.connection, ticking)
        self._publisher = Publisher(self._out, agent_exchanges(topology))
        self._replies = Consumer(
            self._in,
            Subscription(
                queue=instance_queue(topology, instance_id),
                prefetch=_IN_HAND,
                handle=self._on_reply,
                acknowledged=False,
            ),
        )
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start connecting; calls wait for the connection within their own time limits."""
        await self._open.enter_async_context(alongside(self._out.run(), self._in.run()))
        await self._open.enter_async_context(alongside(self._publisher.run(), self._replies.run()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close within bounds; an error of the block comes out as it is."""
        await self._open.__aexit__(kind, error, trace)

    async def ready(self) -> None:
        """Return as soon as there is a broker on which a dispatcher was started."""
        await self._publisher.up()
        await self._replies.queue_name()

    async def call(self, frame: bytes) -> bytes:
        """Publish to the registry queue and wait for the reply in the instance's queue."""
        correlation_id = new_id()
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = reply
        try:
            async with asyncio.timeout(self._rules.reply_timeout_s):
                message = Message(
                    exchange=self._topology.registry_exchange,
                    key=REGISTRY_KEY,
                    body=frame,
                    kind="registry",
                    correlation_id=correlation_id,
                    reply_to=await self._replies.queue_name(),
                )
                await self._publisher.publish(message)
                return await reply
        except (TimeoutError, DeliveryError) as error:
            raise OutcomeUnknownError("the dispatcher did not answer in time") from error
        finally:
            del self._waiting[correlation_id]

    async def beat(self, frame: bytes) -> None:
        """Publish to the replicas' queues; without a broker nothing happens."""
        if not self._publisher.is_up:
            return
        message = Message(
            exchange=self._topology.heartbeat_exchange,
            key="",
            body=frame,
            kind="heartbeat",
            persistent=False,
            mandatory=False,
        )
        try:
            await self._publisher.publish(message)
        except DeliveryError as error:
            log.debug("link.heartbeat_lost", extra={"reason": error.error_code})

    async def publish_result(self, frame: bytes) -> None:
        """Publish to the results queue and wait for the broker's confirm."""
        await self._publisher.publish(self._report(RESULTS_KEY, frame))

    async def publish_signal(self, frame: bytes) -> None:
        """Publish to the signals queue and wait for the broker's confirm."""
        await self._publisher.publish(self._report(SIGNALS_KEY, frame))

    def _report(self, key: str, frame: bytes) -> Message:
        return Message(exchange=self._topology.result_exchange, key=key, body=frame, kind="result")

    @asynccontextmanager
    async def controls(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[bytes]]:
        """Consume a queue of this instance's own, made anew after every lost connection.

        Entering takes until there is a broker on which a dispatcher was started.
        """
        arrived: asyncio.Queue[Received] = asyncio.Queue(MAX_CONTROLS)

        def take(received: Received) -> None:
            if not arrived.full():
                arrived.put_nowait(received)

        subscription = Subscription(
            queue=control_queue(self._topology, self._instance_id, agent_id),
            prefetch=_IN_HAND,
            handle=take,
            acknowledged=False,
        )
        consumer = Consumer(self._in, subscription)
        async with alongside(consumer.run()):
            await consumer.queue_name()
            yield _bodies(arrived)

    @asynccontextmanager
    async def deliveries(self, agent_id: AgentId, prefetch: int) -> AsyncIterator[AsyncIterator[Delivery]]:
        """Consume the agent's queue, again after every lost connection; the iterator never ends by itself."""
        arrived = _Arrivals()
        subscription = Subscription(
            queue=Queue(name=self._topology.task_queue(agent_id)), prefetch=prefetch, handle=arrived.put
        )
        async with alongside(Consumer(self._in, subscription).run()):
            yield arrived

    def _on_reply(self, received: Received) -> None:
        waiting = self._waiting.get(received.correlation_id or "")
        if waiting and not waiting.done():
            waiting.set_result(received.body)


async def _bodies(arrived: asyncio.Queue[Received]) -> AsyncIterator[bytes]:
    while True:
        yield (await arrived.get()).body


class _Arrivals:
    """Deliveries in order; at most `prefetch` live ones are in it, and it skips those that were lost."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Received] = asyncio.Queue()

    def put(self, received: Received) -> None:
        self._queue.put_nowait(received)

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> Delivery:
        while (received := await self._queue.get()).is_lost:
            continue
        return received
