"""Task queues that an operator deleted or a crash left without a leader are found and filled again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import aio_pika
import pytest

from dispatcher.amqp.connection import ConnectionRules
from dispatcher.channel.canary import CanaryRules
from dispatcher.channel.rabbitmq import RabbitChannel, RabbitRules
from dispatcher.errors import UnavailableError, UnroutableError
from dispatcher.identifiers import AgentId, InstanceId, ReplicaId, new_id
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import Topology
from dispatcher.sdk.rabbitmq import LinkRules, RabbitLink
from tests.conformance.channel_world import (
    DEADLINE_S,
    ORDER,
    Recorder,
    consuming,
    following,
    frame_text,
    task,
    text_of,
)
from tests.services.rabbitmq import RabbitNode

IMPATIENT = ConnectionRules(first_delay_s=0.05, longest_delay_s=0.2)
OFTEN = CanaryRules(every_s=0.2, answer_s=1.0, refill_again_s=0.5)
SELDOM = CanaryRules(every_s=3600.0)


@dataclass
class Watched:
    """A channel whose queues are watched, an agent's link, and what the ledger was told."""

    topology: Topology
    channel: RabbitChannel
    link: RabbitLink
    served: set[AgentId] = field(default_factory=set)
    lost: list[AgentId] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def prepare(self) -> None:
        """An agent registers."""
        await self.channel.prepare(ORDER)
        self.served.add(ORDER)

    async def refill(self, agent_id: AgentId) -> None:
        """What the ledger does: send again what has no result."""
        if self.failures:
            raise self.failures.pop()
        self.lost.append(agent_id)
        self.told.set()
        await self.channel.send(agent_id, task(f"again {len(self.lost)}"))

    async def until_told(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.told.wait()


@asynccontextmanager
async def watched(url: str, canary: CanaryRules) -> AsyncIterator[Watched]:
    topology, served = Topology(prefix=f"test-{new_id()}"), set[AgentId]()
    channel = RabbitChannel(
        url,
        topology,
        ReplicaId(new_id()),
        served=lambda: served,
        rules=RabbitRules(connection=IMPATIENT, canary=canary),
    )
    link = RabbitLink(url, topology, InstanceId(new_id()), rules=LinkRules(connection=IMPATIENT))
    world = Watched(topology=topology, channel=channel, link=link, served=served)
    async with AsyncExitStack() as stack:
        inbound = replace(Recorder().inbound(), on_queue_lost=world.refill)
        await stack.enter_async_context(channel.open(inbound))
        await stack.enter_async_context(link)
        async with asyncio.timeout(DEADLINE_S):
            await channel.ready()
            await link.ready()
        yield world


async def delete_task_queue(url: str, topology: Topology) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.queue_delete(topology.task_queue(ORDER))


async def test_a_deleted_queue_is_made_again_and_its_agent_gets_what_was_in_it(amqp_url: str):
    async with watched(amqp_url, OFTEN) as world, consuming(world.link) as deliveries:
        await world.prepare()
        await world.channel.send(ORDER, task("before"))
        assert text_of(await following(deliveries)) == "before"

        await delete_task_queue(amqp_url, world.topology)
        again = await following(deliveries)

        assert text_of(again).startswith("again")
        assert set(world.lost) == {ORDER}
        await again.settle(Settlement.ACK)


async def test_what_was_sent_right_after_the_queue_was_made_again_is_sent_once_more(amqp_url: str):
    async with watched(amqp_url, OFTEN) as world, consuming(world.link) as deliveries:
        await world.prepare()
        await delete_task_queue(amqp_url, world.topology)

        while text_of(await following(deliveries)) != "again 2":
            pass

        assert world.lost == [ORDER, ORDER]


async def test_a_task_that_finds_no_queue_has_it_made_at_once(amqp_url: str):
    async with watched(amqp_url, SELDOM) as world:
        await world.prepare()
        await delete_task_queue(amqp_url, world.topology)

        with pytest.raises(UnroutableError):
            await world.channel.send(ORDER, task("lost"))
        await world.until_told()

        await world.channel.send(ORDER, task("found"))


async def test_a_ledger_that_does_not_answer_is_told_later(amqp_url: str):
    async with watched(amqp_url, OFTEN) as world:
        world.failures = [UnavailableError("no database"), UnavailableError("no database")]
        await world.prepare()

        await delete_task_queue(amqp_url, world.topology)
        await world.until_told()

        assert (world.failures, world.lost[0]) == ([], ORDER)


async def test_asking_takes_no_task_from_a_queue(amqp_url: str):
    async with watched(amqp_url, replace(OFTEN, every_s=0.01)) as world:
        await world.prepare()
        for number in range(200):
            await world.channel.send(ORDER, task(str(number)))

        async with await aio_pika.connect(amqp_url) as connection:
            channel = await connection.channel()
            queue = await channel.get_queue(world.topology.task_queue(ORDER))
            got = [await queue.get(no_ack=True) for _ in range(200)]

    assert [frame_text(message.body) for message in got] == [str(number) for number in range(200)]
    assert not any(message.redelivered for message in got)


@pytest.mark.timeout(180)
async def test_a_queue_without_a_leader_is_replaced_and_its_agent_gets_what_was_in_it(
    own_broker: RabbitNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    await asyncio.to_thread(own_broker.start)
    async with watched(own_broker.url, OFTEN) as world, consuming(world.link) as deliveries:
        await world.prepare()
        await world.channel.send(ORDER, task("before"))
        await (await following(deliveries)).settle(Settlement.ACK)
        world.lost.clear()
        world.told.clear()

        await asyncio.to_thread(own_broker.kill)
        lose_leaders(tmp_path)
        await asyncio.to_thread(own_broker.start)
        async with asyncio.timeout(60):
            await world.told.wait()

        again = await following(deliveries)
        assert text_of(again).startswith("again")
        assert "queue.leaderless" in caplog.messages
        await again.settle(Settlement.ACK)


def lose_leaders(folder: Path) -> None:
    """Do on purpose what a hard kill now and then does to young quorum queues (rabbitmq-server 15725).

    A queue whose name is not in the log's directory comes back as a new member that never becomes
    the leader of anything.
    """
    directories = list(folder.rglob("names.dets"))
    assert directories
    for directory in directories:
        directory.unlink()
