"""What a consumer still tells the broker when it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiormq import Channel
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection
from dispatcher.amqp.consumer import Consumer, Subscription
from dispatcher.amqp.declare import Queue
from dispatcher.amqp.settle import Received, settled_by
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement
from tests.amqp.builders import Broker, Sent

LIMIT_S = 5
QUEUE = Queue(name="results")


@dataclass
class Wired:
    """A connection with one channel, on which the broker has one message; it closes as the real one does."""

    broker: Broker
    clock: SystemClock = field(default_factory=SystemClock)
    rules = DEFAULT_RULES
    name = QUEUE.name

    @asynccontextmanager
    async def channel(self, *_: object, **__: object) -> AsyncIterator["Wired"]:
        try:
            yield self
        finally:
            await self.broker.channel.close()

    async def get_underlay_channel(self) -> Channel:
        return self.broker.channel

    async def set_qos(self, **_: object) -> None:
        """Any will do."""

    async def get_queue(self, _: str) -> "Wired":
        return self


def one_message(_: int, sent: Sent) -> tuple[object, ...]:
    """The answer to who consumes: the first message comes with it."""
    match sent[0]:
        case commands.Basic.Consume(consumer_tag=tag):
            begun, body = commands.Basic.ConsumeOk(tag), b"{}"
            delivered = commands.Basic.Deliver(tag, 1, exchange="", routing_key=QUEUE.name)
            return (begun, delivered, ContentHeader(body_size=len(body)), ContentBody(body))
    return ()


async def told_by(decide: Callable[[Received], Awaitable[Settlement]], taken: asyncio.Event) -> list[object]:
    """What a broker is told of one message by a consumer that is ended once its handler has `taken` it."""
    broker = Broker(one_message)
    consumer = Consumer(
        cast("Connection", Wired(broker)), Subscription(queue=QUEUE, prefetch=1, handle=settled_by(decide))
    )
    async with asyncio.timeout(LIMIT_S), alongside(consumer.run()):
        await taken.wait()
    return [frame for frame, *_ in broker.sent if not isinstance(frame, commands.Basic.Consume)]


async def test_what_a_handler_decides_when_its_consumer_ends_is_told():
    taken = asyncio.Event()

    async def decide(_: Received) -> Settlement:
        taken.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Settlement.ACK
        return Settlement.DEAD

    (ack,) = await told_by(decide, taken)

    assert isinstance(ack, commands.Basic.Ack)
    assert ack.delivery_tag == 1


async def test_a_handler_that_ends_undecided_leaves_the_message_to_the_broker():
    taken = asyncio.Event()

    async def decide(_: Received) -> Settlement:
        taken.set()
        await asyncio.Event().wait()
        return Settlement.DEAD

    assert await told_by(decide, taken) == []
