"""What arrives at a replica over RabbitMQ, handed to the right part of `Inbound`."""

import logging
from dataclasses import dataclass

from dispatcher.amqp.consumer import Subscription
from dispatcher.amqp.layout import registry_queue, replica_queue, results_queue
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.amqp.settle import Received, settled_by
from dispatcher.channel.channel import Inbound
from dispatcher.channel.result_intake import DEFAULT_RESULT_RULES, ResultIntake, ResultRules
from dispatcher.errors import DeliveryError
from dispatcher.identifiers import ReplicaId, RequestId
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import REGISTRY_CHANGED, Topology

log = logging.getLogger(__name__)

DEFAULT_EXCHANGE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundRules:
    """At most `in_hand` result frames and `registrations` registry frames are in hand at once."""

    in_hand: int = 256
    registrations: int = 16
    results: ResultRules = DEFAULT_RESULT_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitInbound:
    """The handlers of one replica's three queues."""

    inbound: Inbound
    intake: ResultIntake
    topology: Topology
    replica_id: ReplicaId
    publisher: Publisher
    rules: InboundRules

    def subscriptions(self) -> tuple[Subscription, ...]:
        """Results and registry frames are shared with other replicas, notices are this one's own."""
        return (
            Subscription(
                queue=results_queue(self.topology),
                prefetch=self.rules.in_hand,
                handle=settled_by(self._on_result),
            ),
            Subscription(
                queue=registry_queue(self.topology),
                prefetch=self.rules.registrations,
                handle=settled_by(self._on_registry),
            ),
            Subscription(
                queue=replica_queue(self.topology, self.replica_id),
                prefetch=self.rules.in_hand,
                handle=self._on_notice,
                acknowledged=False,
            ),
        )

    async def _on_result(self, received: Received) -> Settlement:
        return await self.intake.offer(received.body)

    async def _on_registry(self, received: Received) -> Settlement:
        """Always done with afterwards: whoever gets no reply calls again."""
        body = await self.inbound.on_registry(received.body)
        if received.reply_to:
            await self._reply(received, received.reply_to, body)
        return Settlement.ACK

    async def _reply(self, received: Received, queue: str, body: bytes) -> None:
        reply = Message(
            exchange=DEFAULT_EXCHANGE,
            key=queue,
            body=body,
            kind="reply",
            correlation_id=received.correlation_id,
            persistent=False,
        )
        try:
            await self.publisher.publish(reply)
        except DeliveryError as error:
            log.info("channel.reply_lost", extra={"reason": error.error_code})

    async def _on_notice(self, received: Received) -> None:
        if received.exchange == self.topology.wake_exchange:
            self.inbound.on_wake(RequestId(received.body.decode()))
        elif received.kind == REGISTRY_CHANGED:
            if received.body != self.replica_id.encode():
                self.inbound.on_registry_change()
        else:
            self.inbound.on_heartbeat(received.body)
