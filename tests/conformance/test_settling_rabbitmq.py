"""Messages settled together, at a real broker: it keeps those that were not, and no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection
from dispatcher.amqp.consumer import Consumer, Subscription
from dispatcher.amqp.declare import Queue, declare_once
from dispatcher.amqp.probe import Probe
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.amqp.settle import Received
from dispatcher.clock import SystemClock
from dispatcher.identifiers import new_id
from dispatcher.protocol.link import Settlement
from tests.conformance.channel_world import DEADLINE_S

COUNT = 20
HELD, GIVEN_BACK = 3, 11


@pytest.fixture
async def connection(amqp_url: str) -> AsyncIterator[Connection]:
    opened = Connection(amqp_url, "settling", DEFAULT_RULES, SystemClock())
    async with alongside(opened.run()):
        yield opened


@pytest.fixture
async def queue(connection: Connection) -> AsyncIterator[Queue]:
    made = Queue(name=f"test-{new_id()}", arguments={"x-queue-type": "quorum"})
    yield made
    await Probe(connection, DEADLINE_S).delete(made.name)


@asynccontextmanager
async def delivered(connection: Connection, queue: Queue, count: int) -> AsyncIterator[list[Received]]:
    """Consume until so many messages are in hand; what is not settled in the block goes back after it."""
    arrived: asyncio.Queue[Received] = asyncio.Queue()
    consumer = Consumer(connection, Subscription(queue=queue, prefetch=COUNT, handle=arrived.put))
    async with asyncio.timeout(DEADLINE_S), alongside(consumer.run()):
        yield [await arrived.get() for _ in range(count)]


async def publish(connection: Connection, queue: Queue) -> None:
    publisher = Publisher(connection, [])
    async with asyncio.timeout(DEADLINE_S), alongside(publisher.run()), asyncio.TaskGroup() as group:
        for number in range(COUNT):
            message = Message(exchange="", key=queue.name, body=str(number).encode(), kind="test")
            group.create_task(publisher.publish(message))


async def waiting(connection: Connection, queue: Queue) -> int | None:
    """Messages in the queue once nobody consumes it."""
    async with connection.channel(asyncio.Event(), confirms=False) as channel:
        return (await channel.get_queue(queue.name)).declaration_result.message_count


async def test_of_what_was_settled_together_only_the_rest_comes_again(connection: Connection, queue: Queue):
    await declare_once(connection, queue)
    await publish(connection, queue)
    async with delivered(connection, queue, COUNT) as messages:
        for number in reversed(range(COUNT)):
            if number != HELD:
                settlement = Settlement.REQUEUE if number == GIVEN_BACK else Settlement.ACK
                await messages[number].settle(settlement)

    async with delivered(connection, queue, 2) as left:
        again = sorted(int(message.body) for message in left)
        for message in left:
            await message.settle(Settlement.ACK)

    assert again == [HELD, GIVEN_BACK]
    assert await waiting(connection, queue) == 0
