"""Agents reached over RabbitMQ. Names and arguments are the topology's; the wire is `amqp`'s."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection, ConnectionRules
from dispatcher.amqp.consumer import Consumer
from dispatcher.amqp.declare import Queue, declare_once
from dispatcher.amqp.layout import dispatcher_exchanges, people_queue, task_queue
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.channel.budget import remaining_ms
from dispatcher.channel.canary import Canary, CanaryRules
from dispatcher.channel.channel import Inbound
from dispatcher.channel.rabbit_inbound import InboundRules, RabbitInbound
from dispatcher.channel.result_intake import ResultIntake
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DeliveryError, OutcomeUnknownError, UnavailableError, UnroutableError
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.handoff import HandoffFrame
from dispatcher.protocol.topology import REGISTRY_CHANGED, Topology

log = logging.getLogger(__name__)

_ASKING_CLOSE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitRules:
    """Limits of the channel's parts."""

    connection: ConnectionRules = DEFAULT_RULES
    inbound: InboundRules = field(default_factory=InboundRules)
    canary: CanaryRules = field(default_factory=CanaryRules)


class RabbitChannel:
    """Implements `channel.Channel` for one replica.

    `served` names the agents whose queues have to exist and answer: those are watched. Publishing
    and consuming have a connection each: an alarm of the broker stops all frames of a connection
    that publishes, acknowledgements included.
    """

    def __init__(
        self,
        url: str,
        topology: Topology,
        replica_id: ReplicaId,
        *,
        served: Callable[[], Collection[AgentId]] = tuple,
        rules: RabbitRules | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._topology = topology
        self._replica_id = replica_id
        self._served = served
        self._rules = rules or RabbitRules()
        self._clock = clock or SystemClock()
        self._out = Connection(url, f"{replica_id} publishes", self._rules.connection, self._clock)
        self._in = Connection(url, f"{replica_id} consumes", self._rules.connection, self._clock)
        self._asks = Connection(url, f"{replica_id} asks", _impatient(self._rules.connection), self._clock)
        self._publisher = Publisher(self._out, dispatcher_exchanges(topology))
        self._consumers: tuple[Consumer, ...] = ()
        self._canary: Canary | None = None

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Connect and consume until the block ends; starts at once, broker or not.

        Raises `ConfigurationError` where there is a broker, and on it a queue of ours with other
        arguments. Without a broker that is told by `problem` later.
        """
        handlers = RabbitInbound(
            inbound=inbound,
            intake=ResultIntake(inbound.on_result, self._rules.inbound.results, self._clock),
            topology=self._topology,
            replica_id=self._replica_id,
            publisher=self._publisher,
            rules=self._rules.inbound,
            clock=self._clock,
        )
        canary = self._canary = Canary(
            self._asks,
            self._topology,
            served=self._served,
            on_queue_lost=inbound.on_queue_lost,
            rules=self._rules.canary,
        )
        self._consumers = tuple(Consumer(self._in, wanted) for wanted in handlers.subscriptions())
        async with (
            alongside(self._out.run(), self._in.run(), self._asks.run()),
            self._checked(consumer.queue for consumer in self._consumers if not consumer.queue.exclusive),
            alongside(self._publisher.run(), canary.run()),
            alongside(*(consumer.run() for consumer in self._consumers)),
        ):
            try:
                yield
            finally:
                await asyncio.gather(*(consumer.drain() for consumer in self._consumers))

    @asynccontextmanager
    async def _checked(self, queues: Iterable[Queue]) -> AsyncIterator[None]:
        """Nothing of ours stands in the way, as far as a broker that is there can tell."""
        if await self._in.tried():
            with suppress(UnavailableError):
                for queue in queues:
                    await declare_once(self._in, queue)
        yield

    async def prepare(self, agent_id: AgentId) -> None:
        """Declare the agent's queue and its dead letters.

        Raises `UnavailableError` without a broker and `ConfigurationError` where the queue exists
        with other arguments.
        """
        await declare_once(self._in, task_queue(self._topology, agent_id))

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """Publish the frame, to live as long as its budget, and wait for the broker's confirm."""
        frame = Message(
            exchange=self._topology.task_exchange,
            key=agent_id,
            body=task.model_dump_json().encode(),
            kind=task.type,
            correlation_id=task.request_id,
            lifetime_ms=remaining_ms(task),
        )
        try:
            await self._publisher.publish(frame)
        except (UnroutableError, OutcomeUnknownError):
            if self._canary is not None:
                self._canary.suspect(agent_id)
            raise

    async def prepare_people(self) -> None:
        """Declare the queue of what people do; raises like `prepare`."""
        await declare_once(self._in, people_queue(self._topology))

    async def tell_people(self, frame: HandoffFrame) -> None:
        """Publish to people's queue and wait for the broker's confirm; raises like `send`."""
        told = Message(
            exchange="",
            key=self._topology.people_queue,
            body=frame.model_dump_json().encode(),
            kind=frame.type,
            message_id=frame.task_id,
            correlation_id=frame.request_id,
        )
        await self._publisher.publish(told)

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """Publish to the queues of the agent's instances; nothing happens when there are none."""
        body = frame.model_dump_json()
        await self._tell(self._topology.control_exchange, agent_id, body, frame.type)

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """Publish to the replica's own queue; nothing happens when it is gone."""
        await self._tell(self._topology.wake_exchange, replica_id, request_id, "wake")

    async def announce_registry_change(self) -> None:
        """Publish to the queues of all replicas."""
        await self._tell(self._topology.heartbeat_exchange, "", self._replica_id, REGISTRY_CHANGED)

    def problem(self) -> str | None:
        """What of the broker keeps tasks from agents, or results from us."""
        parts: tuple[Publisher | Consumer, ...] = (self._publisher, *self._consumers)
        if misfit := next((part.misfit for part in parts if part.misfit), None):
            return misfit
        if self._out.is_blocked:
            return "the broker blocks publishers: it is short of memory or disk"
        if not self._consumers or not all(part.is_up for part in parts):
            return "agents can't be reached: no broker"
        return None

    def is_ready(self) -> bool:
        """Whether publisher and all consumers are in place, and the broker reads what we write."""
        return self.problem() is None

    async def ready(self) -> None:
        """Return as soon as publisher and all consumers are in place."""
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


def _impatient(rules: ConnectionRules) -> ConnectionRules:
    """For the connection whose channels get stuck: it is closed when they do, and nobody waits for that."""
    return replace(rules, close_timeout_s=min(rules.close_timeout_s, _ASKING_CLOSE_S))
