"""What was received, and the one place that settles it."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Coroutine
from itertools import takewhile

from aiormq import spec
from pamqp.header import ContentHeader

from dispatcher.amqp.encoding import ack, reject
from dispatcher.amqp.lane import Arrival, Lane
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)

_TAG = struct.Struct(">Q")
_CONSUMER_TAG_SIZE = 4
"""Where `basic.deliver` has the length of the consumer's tag; behind that is the delivery's."""


class Settler:
    """Tells the broker what became of one channel's messages; in one frame where it can.

    A single frame acknowledges all messages up to one: with it go those at the front of what is in
    hand, which costs the broker about as much as one of them. At most the prefetch is in hand.
    """

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._number = lane.channel.number
        self._loop = asyncio.get_running_loop()
        self._in_hand: dict[int, None] = {}
        self._decided: dict[int, Settlement] = {}

    @property
    def has_ended(self) -> bool:
        """Whether the broker can't be told any more: what is unsettled it delivers again."""
        return self._lane.has_ended

    def note(self, tag: int) -> None:
        """Take a message in hand; in the order of arrival, and before one that came after it is settled."""
        self._in_hand[tag] = None

    def settle(self, tag: int, settlement: Settlement) -> None:
        """Have the broker told in the event loop's next turn."""
        if not self._decided:
            self._loop.call_soon(self.tell)
        self._decided[tag] = settlement

    def tell(self) -> None:
        """Tell the broker what is left, without waiting for the socket: nobody answers.

        What closes the channel is written after it. On a connection that is gone there is nothing left to do.
        """
        if self._decided and not self._lane.has_ended:
            self._lane.write(b"".join([*self._given_back(), *self._acknowledged()]))
        self._decided.clear()

    def _given_back(self) -> list[bytes]:
        """RabbitMQ 4.3 counts only `reject` towards the delivery limit, so work is given back with it."""
        back = {tag: fate for tag, fate in self._decided.items() if fate is not Settlement.ACK}
        for tag in back:
            self._forget(tag)
        return [reject(self._number, tag, requeue=fate is Settlement.REQUEUE) for tag, fate in back.items()]

    def _acknowledged(self) -> list[bytes]:
        """A message that is not decided is still in hand, so no frame covers it."""
        front = list(takewhile(self._decided.__contains__, self._in_hand))
        frames = [ack(self._number, front[-1], multiple=len(front) > 1)] if front else []
        for tag in front:
            self._forget(tag)
        for tag in list(self._decided):
            frames.append(ack(self._number, tag, multiple=False))
            self._forget(tag)
        return frames

    def _forget(self, tag: int) -> None:
        del self._decided[tag]
        self._in_hand.pop(tag, None)


def delivery_tag(arrival: Arrival) -> int:
    """The number under which the broker wants a delivered message settled."""
    method = arrival.method
    tag: int = _TAG.unpack_from(method, _CONSUMER_TAG_SIZE + 1 + method[_CONSUMER_TAG_SIZE])[0]
    return tag


class Received:
    """One consumed message; implements `protocol.link.Delivery`.

    Its properties are decoded when they are asked for: of most only the body is.
    """

    __slots__ = ("_arrival", "_is_settled", "_settler", "_tag", "since")

    def __init__(self, arrival: Arrival, tag: int, settler: Settler, since: float = 0.0) -> None:
        self._arrival = arrival
        self._tag = tag
        self._settler = settler
        self.since = since
        """When it was read, in monotonic seconds; it tells no earlier time."""
        self._is_settled = False

    @property
    def body(self) -> bytes:
        """The encoded frame."""
        return self._arrival.body

    @property
    def exchange(self) -> str:
        """The exchange it came through."""
        return self._delivered().exchange or ""

    @property
    def kind(self) -> str | None:
        """The message's `type` property."""
        return self._properties().message_type

    @property
    def reply_to(self) -> str | None:
        """The queue that waits for a reply."""
        return self._properties().reply_to

    @property
    def correlation_id(self) -> str | None:
        """What a reply has to repeat."""
        return self._properties().correlation_id

    @property
    def key(self) -> str:
        """The routing key it came under."""
        return self._delivered().routing_key or ""

    @property
    def death(self) -> str:
        """Of a dead letter, why it was given up first; empty for others."""
        headers = self._properties().headers or {}
        return str(headers.get("x-first-death-reason", ""))

    @property
    def is_lost(self) -> bool:
        """Whether its channel ended: it can't be settled any more and is delivered again elsewhere."""
        return self._settler.has_ended

    async def settle(self, settlement: Settlement) -> None:
        """Have `settlement` carried out, once; on a connection that is gone there is nothing left to do."""
        if not self._is_settled:
            self._is_settled = True
            self._settler.settle(self._tag, settlement)

    def _delivered(self) -> spec.Basic.Deliver:
        method = spec.Basic.Deliver()
        method.unmarshal(self._arrival.method[4:])
        return method

    def _properties(self) -> spec.Basic.Properties:
        head = ContentHeader()
        head.unmarshal(self._arrival.header)
        return head.properties


def settled_by(
    decide: Callable[[Received], Awaitable[Settlement]],
) -> Callable[[Received], Coroutine[object, object, None]]:
    """A handler that settles each message as `decide` says; dead when `decide` raises."""

    async def handle(received: Received) -> None:
        settlement = Settlement.DEAD
        try:
            settlement = await decide(received)
        except Exception:
            log.exception("amqp.handler_failed")
        await received.settle(settlement)

    return handle
