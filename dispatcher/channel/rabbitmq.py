"""Agents reached over RabbitMQ. Names and arguments are the topology's; the wire is `amqp`'s."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection, ConnectionRules
from dispatcher.amqp.consumer import Consumer
from dispatcher.amqp.declare import declare_once
from dispatcher.amqp.layout import dispatcher_exchanges, task_queue
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.channel.budget import remaining_ms
from dispatcher.channel.channel import Inbound
from dispatcher.channel.rabbit_inbound import InboundRules, RabbitInbound
from dispatcher.channel.result_intake import ResultIntake
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DeliveryError
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.topology import REGISTRY_CHANGED, Topology

log = logging.getLogger(__name__)


class RabbitChannel:
    """Implements `channel.Channel` for one replica.

    Publishing and consuming have a connection each: an alarm of the broker stops all frames of
    a connection that publishes, acknowledgements included.
    """

    def __init__(
        self,
        url: str,
        topology: Topology,
        replica_id: ReplicaId,
        *,
        connection_rules: ConnectionRules = DEFAULT_RULES,
        inbound_rules: InboundRules | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._topology = topology
        self._replica_id = replica_id
        self._inbound_rules = inbound_rules or InboundRules()
        self._clock = clock or SystemClock()
        self._out = Connection(url, f"{replica_id} publishes", connection_rules, self._clock)
        self._in = Connection(url, f"{replica_id} consumes", connection_rules, self._clock)
        self._publisher = Publisher(self._out, dispatcher_exchanges(topology))
        self._consumers: tuple[Consumer, ...] = ()

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Connect and consume until the block ends; starts at once, broker or not."""
        handlers = RabbitInbound(
            inbound=inbound,
            intake=ResultIntake(inbound.on_result, self._inbound_rules.results, self._clock),
            topology=self._topology,
            replica_id=self._replica_id,
            publisher=self._publisher,
            rules=self._inbound_rules,
        )
        self._consumers = tuple(Consumer(self._in, wanted) for wanted in handlers.subscriptions())
        async with (
            alongside(self._out.run(), self._in.run()),
            alongside(self._publisher.run()),
            alongside(*(consumer.run() for consumer in self._consumers)),
        ):
            try:
                yield
            finally:
                await asyncio.gather(*(consumer.drain() for consumer in self._consumers))

    async def prepare(self, agent_id: AgentId) -> None:
        """Declare the agent's queue and its dead letters.

        Raises `UnavailableError` without a broker and `ConfigurationError` where the queue exists
        with other arguments.
        """
        await declare_once(self._in, task_queue(self._topology, agent_id))

    async def send(self, agent_id: AgentId, task: TaskFrame) -> None:
        """Publish the frame, to live as long as its budget, and wait for the broker's confirm."""
        await self._publisher.publish(
            Message(
                exchange=self._topology.task_exchange,
                key=agent_id,
                body=task.model_dump_json().encode(),
                kind=task.type,
                correlation_id=task.request_id,
                lifetime_ms=remaining_ms(task),
            )
        )

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """Publish to the replica's own queue; nothing happens when it is gone."""
        await self._tell(self._topology.wake_exchange, replica_id, request_id, "wake")

    async def announce_registry_change(self) -> None:
        """Publish to the queues of all replicas."""
        await self._tell(self._topology.heartbeat_exchange, "", self._replica_id, REGISTRY_CHANGED)

    def is_ready(self) -> bool:
        """Whether publisher and all consumers are in place."""
        return self._publisher.is_up and bool(self._consumers) and all(c.is_up for c in self._consumers)

    async def ready(self) -> None:
        """Return as soon as `is_ready` holds."""
        await self._publisher.up()
        for consumer in self._consumers:
            await consumer.queue_name()

    async def _tell(self, exchange: str, key: str, text: str, kind: str) -> None:
        """Best effort: without a broker there is no one to tell."""
        if not self._publisher.is_up:
            return
        try:
            await self._publisher.publish(
                Message(
                    exchange=exchange,
                    key=key,
                    body=text.encode(),
                    kind=kind,
                    persistent=False,
                    mandatory=False,
                )
            )
        except DeliveryError as error:
            log.debug("channel.notice_lost", extra={"kind": kind, "reason": error.error_code})
