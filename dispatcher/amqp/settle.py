"""What was received, and the one function that settles it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiormq.abc import DeliveredMessage

from dispatcher.amqp.outcomes import LIBRARY_ERRORS
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)

_SETTLE_TIMEOUT_S = 5.0


class Received:
    """One consumed message; implements `protocol.link.Delivery`."""

    __slots__ = ("_is_settled", "_message", "since")

    def __init__(self, message: DeliveredMessage, since: float = 0.0) -> None:
        self._message = message
        self.since = since
        """When the library handed it over, in monotonic seconds; it tells no earlier time."""
        self._is_settled = False

    @property
    def body(self) -> bytes:
        """The encoded frame."""
        return self._message.body

    @property
    def exchange(self) -> str:
        """The exchange it came through."""
        return self._message.exchange or ""

    @property
    def kind(self) -> str | None:
        """The message's `type` property."""
        return self._message.header.properties.message_type

    @property
    def reply_to(self) -> str | None:
        """The queue that waits for a reply."""
        return self._message.header.properties.reply_to

    @property
    def correlation_id(self) -> str | None:
        """What a reply has to repeat."""
        return self._message.header.properties.correlation_id

    @property
    def key(self) -> str:
        """The routing key it came under."""
        return self._message.routing_key or ""

    @property
    def death(self) -> str:
        """Of a dead letter, why it was given up first; empty for others."""
        headers = self._message.header.properties.headers or {}
        return str(headers.get("x-first-death-reason", ""))

    @property
    def is_lost(self) -> bool:
        """Whether its channel ended: it can't be settled any more and is delivered again elsewhere."""
        return self._message.channel.is_closed

    async def settle(self, settlement: Settlement) -> None:
        """Carry out `settlement` once; on a connection that is gone there is nothing left to do."""
        if self._is_settled:
            return
        self._is_settled = True
        try:
            async with asyncio.timeout(_SETTLE_TIMEOUT_S):
                await _settle(self._message, settlement)
        except LIBRARY_ERRORS as error:
            log.debug("amqp.settled_too_late", extra={"reason": type(error).__name__})


async def _settle(message: DeliveredMessage, settlement: Settlement) -> None:
    """RabbitMQ 4.3 counts only `reject` towards the delivery limit, so work is given back with it.

    Nobody answers either, so the socket is not waited for: what closes the channel is written after it.
    """
    channel, tag = message.channel, message.delivery_tag or 0
    match settlement:
        case Settlement.ACK:
            await channel.basic_ack(tag, wait=False)
        case Settlement.REQUEUE:
            await channel.basic_reject(tag, requeue=True, wait=False)
        case Settlement.DEAD:
            await channel.basic_reject(tag, requeue=False, wait=False)


def settled_by(decide: Callable[[Received], Awaitable[Settlement]]) -> Callable[[Received], Awaitable[None]]:
    """A handler that settles each message as `decide` says; dead when `decide` raises."""

    async def handle(received: Received) -> None:
        settlement = Settlement.DEAD
        try:
            settlement = await decide(received)
        except Exception:
            log.exception("amqp.handler_failed")
        await received.settle(settlement)

    return handle
