"""What was received, and the one place that settles it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import NoReturn

from aiormq.abc import AbstractChannel, DeliveredMessage

from dispatcher.amqp.outcomes import LIBRARY_ERRORS
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)

_SETTLE_TIMEOUT_S = 5.0


class Settler:
    """Tells the broker what became of one channel's messages; in one frame where it can.

    A single frame acknowledges all messages up to one: with it go those at the front of what is in
    hand, which costs the broker about as much as one of them. At most the prefetch is in hand.
    """

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._in_hand: dict[int, None] = {}
        self._decided: dict[int, Settlement] = {}
        self._due = asyncio.Event()

    def note(self, tag: int) -> None:
        """Take a message in hand; in the order of arrival, and before one that came after it is settled."""
        self._in_hand[tag] = None

    def settle(self, tag: int, settlement: Settlement) -> None:
        """Have the broker told in the event loop's next turn."""
        self._decided[tag] = settlement
        self._due.set()

    async def run(self) -> NoReturn:
        """Tell the broker, turn by turn, until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            with _too_late():
                await self._tell()

    async def tell(self) -> None:
        """Tell the broker what is left, unless that takes seconds; while nothing else tells it.

        What is decided meanwhile is told as well.
        """
        with _too_late():
            async with asyncio.timeout(_SETTLE_TIMEOUT_S):
                while self._decided:
                    await self._tell()

    async def _tell(self) -> None:
        await self._give_back()
        await self._acknowledge()

    async def _give_back(self) -> None:
        """RabbitMQ 4.3 counts only `reject` towards the delivery limit, so work is given back with it.

        Nobody answers, so the socket is not waited for: what closes the channel is written after it.
        """
        for tag, settlement in list(self._decided.items()):
            match settlement:
                case Settlement.REQUEUE:
                    await self._channel.basic_reject(tag, requeue=True, wait=False)
                case Settlement.DEAD:
                    await self._channel.basic_reject(tag, requeue=False, wait=False)
                case Settlement.ACK:
                    continue
            self._forget(tag)

    async def _acknowledge(self) -> None:
        """A message is in hand until its frame is written, so that no other frame covers it."""
        decided = self._decided
        if front := list(takewhile(lambda tag: decided.get(tag) is Settlement.ACK, self._in_hand)):
            await self._channel.basic_ack(front[-1], multiple=len(front) > 1, wait=False)
            for tag in front:
                self._forget(tag)
        for tag in [tag for tag, settlement in decided.items() if settlement is Settlement.ACK]:
            await self._channel.basic_ack(tag, wait=False)
            self._forget(tag)

    def _forget(self, tag: int) -> None:
        del self._decided[tag]
        self._in_hand.pop(tag, None)


@contextmanager
def _too_late() -> Iterator[None]:
    """On a connection that is gone there is nothing left to do."""
    try:
        yield
    except LIBRARY_ERRORS as error:
        log.debug("amqp.settled_too_late", extra={"reason": type(error).__name__})


class Received:
    """One consumed message; implements `protocol.link.Delivery`."""

    __slots__ = ("_is_settled", "_message", "_settler", "since")

    def __init__(self, message: DeliveredMessage, settler: Settler, since: float = 0.0) -> None:
        self._message = message
        self._settler = settler
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
        """Have `settlement` carried out, once; on a connection that is gone there is nothing left to do."""
        if not self._is_settled:
            self._is_settled = True
            self._settler.settle(self._message.delivery_tag or 0, settlement)


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
