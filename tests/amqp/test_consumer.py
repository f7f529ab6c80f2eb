"""What a consumer still tells the broker when it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection
from dispatcher.amqp.consumer import Consumer, Subscription
from dispatcher.amqp.declare import Queue
from dispatcher.amqp.lane import Lane
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
    async def lane(self, *_: object, **__: object) -> AsyncIterator[tuple["Wired", Lane]]:
        try:
            yield self, self.broker.lane
        finally:
            await self.broker.channel.close()

    async def set_qos(self, **_: object) -> None:
        """Any will do."""

    async def get_queue(self, _: str) -> "Wired":
        return self

    async def cancel(self, tag: str) -> None:
        await self.broker.channel.basic_cancel(tag)


def message(tag: int) -> tuple[object, ...]:
    """What the broker delivers under that number."""
    delivered = commands.Basic.Deliver("c", tag, exchange="", routing_key=QUEUE.name)
    return (delivered, ContentHeader(body_size=2), ContentBody(b"{}"))


def one_message(_: int, sent: Sent) -> tuple[object, ...]:
    """The answer to who consumes: the first message comes with it."""
    match sent[0]:
        case commands.Basic.Consume(consumer_tag=tag):
            return (commands.Basic.ConsumeOk(tag), *message(1))
        case commands.Basic.Cancel(consumer_tag=tag):
            return (commands.Basic.CancelOk(tag),)
    return ()


async def told_by(decide: Callable[[Received], Awaitable[Settlement]], taken: asyncio.Event) -> list[object]:
    """What a broker is told of one message by a consumer that is ended once its handler has `taken` it."""
    broker = Broker(one_message)
    consumer = Consumer(
        cast("Connection", Wired(broker)), Subscription(queue=QUEUE, prefetch=1, handle=settled_by(decide))
    )
    async with asyncio.timeout(LIMIT_S), alongside(consumer.run()):
        await consumer.queue_name()
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


@asynccontextmanager
async def consuming(handle: Callable[[Received], Coroutine[object, object, None] | None]):
    """A broker with one consumer, which has got the message 1 already."""
    broker = Broker(one_message)
    consumer = Consumer(
        cast("Connection", Wired(broker)), Subscription(queue=QUEUE, prefetch=9, handle=handle)
    )
    async with asyncio.timeout(LIMIT_S), alongside(consumer.run()):
        await consumer.queue_name()
        yield broker, consumer


async def test_a_handler_that_needs_no_task_is_called_as_the_message_comes():
    taken: list[Received] = []

    async with consuming(taken.append) as (broker, _):
        broker.say(*message(2), *message(3))

        assert len(taken) == 3


async def test_a_handler_that_raises_is_told_of_and_the_next_message_reaches_it(
    caplog: pytest.LogCaptureFixture,
):
    taken: list[Received] = []

    def handle(received: Received) -> None:
        taken.append(received)
        raise ValueError

    async with consuming(handle) as (broker, _):
        broker.say(*message(2))

    assert len(taken) == 2
    assert caplog.messages.count("amqp.handler_failed") == 2
    refused = [one for one, *_ in broker.sent if isinstance(one, commands.Basic.Reject)]
    assert [(one.delivery_tag, one.requeue) for one in refused] == [(1, False), (2, False)]


async def test_a_handler_that_fails_later_is_told_of_too(caplog: pytest.LogCaptureFixture):
    async def handle(_: Received) -> None:
        raise ValueError

    async with consuming(handle) as (_, consumer):
        await asyncio.wait_for(consumer.drain(), LIMIT_S)

    assert caplog.messages.count("amqp.handler_failed") == 1


async def test_what_comes_while_it_is_drained_is_left_to_the_broker():
    taken: list[Received] = []

    async with consuming(taken.append) as (broker, consumer):
        await consumer.drain()
        broker.say(*message(2))

    assert len(taken) == 1


async def test_a_message_that_comes_after_the_end_reaches_nobody():
    taken: list[Received] = []

    async with consuming(taken.append) as (broker, _):
        pass
    broker.say(*message(2))

    assert len(taken) == 1


async def test_a_message_that_is_settled_after_the_end_is_left_to_the_broker():
    taken: list[Received] = []

    async with consuming(taken.append) as (broker, _):
        pass
    told = len(broker.sent)
    await taken[0].settle(Settlement.ACK)
    await SystemClock().sleep(0)

    assert taken[0].is_lost
    assert len(broker.sent) == told
