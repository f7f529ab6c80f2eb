"""What arrives at a replica over RabbitMQ, handed to the right part of `Inbound`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from dispatcher.amqp.consumer import Subscription
from dispatcher.amqp.layout import dead_queue, registry_queue, replica_queue, results_queue, signals_queue
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.amqp.settle import Received, settled_by
from dispatcher.channel.channel import RESULTS, Dead, DeadReason, Inbound
from dispatcher.channel.result_intake import DEFAULT_RESULT_RULES, ResultIntake, ResultRules
from dispatcher.clock import Clock
from dispatcher.errors import DeliveryError
from dispatcher.identifiers import ReplicaId, RequestId
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import REGISTRY_CHANGED, Topology

log = logging.getLogger(__name__)

DEFAULT_EXCHANGE = ""
_REASONS: Mapping[str, DeadReason] = {
    "rejected": DeadReason.REJECTED,
    "delivery_limit": DeadReason.DELIVERY_LIMIT,
    "expired": DeadReason.EXPIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundRules:
    """At most so many result frames (`in_hand`), registry frames and dead letters are in hand at once.

    A dead letter that can't be kept now is offered again after `dead_pause_s`.
    """

    in_hand: int = 256
    registrations: int = 16
    dead_letters: int = 16
    dead_pause_s: float = 1.0
    results: ResultRules = DEFAULT_RESULT_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitInbound:
    """The handlers of one replica's queues."""

    inbound: Inbound
    intake: ResultIntake
    topology: Topology
    replica_id: ReplicaId
    publisher: Publisher
    rules: InboundRules
    clock: Clock

    def subscriptions(self) -> tuple[Subscription, ...]:
        """Results, signals and registry frames are shared with other replicas, notices are this one's own."""
        return (
            Subscription(
                queue=results_queue(self.topology),
                prefetch=self.rules.in_hand,
                handle=settled_by(self._on_result),
            ),
            Subscription(
                queue=signals_queue(self.topology),
                prefetch=self.rules.in_hand,
                handle=settled_by(self._on_result),
            ),
            Subscription(
                queue=dead_queue(self.topology, self.topology.dead_results_key),
                prefetch=self.rules.dead_letters,
                handle=settled_by(self._on_dead),
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
                on_up=self.inbound.on_hearing,
            ),
        )

    async def _on_result(self, received: Received) -> Settlement:
        return await self.intake.offer(received.body)

    async def _on_dead(self, received: Received) -> Settlement:
        """Held until it is kept: the queue would give up in its turn what is given back to it too often."""
        of_results = received.key == self.topology.dead_results_key
        dead = Dead(
            source=RESULTS if of_results else received.key,
            body=received.body,
            reason=_REASONS.get(received.death, DeadReason.REJECTED),
        )
        while await self.inbound.on_dead(dead) is Settlement.REQUEUE and not received.is_lost:
            await self.clock.sleep(self.rules.dead_pause_s)
        return Settlement.ACK

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

    def _on_notice(self, received: Received) -> None:
        if received.exchange == self.topology.wake_exchange:
            self.inbound.on_wake(RequestId(received.body.decode()))
        elif received.kind == REGISTRY_CHANGED:
            if received.body != self.replica_id.encode():
                self.inbound.on_registry_change()
        else:
            self.inbound.on_heartbeat(received.body)
