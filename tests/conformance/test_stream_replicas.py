"""Streams of events with several replicas: on one broker, one database, and with keys."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from dispatcher.assembly.storage import upgrade_storage
from dispatcher.identifiers import InstanceId, new_id
from dispatcher.protocol.topology import Topology
from dispatcher.sdk.rabbitmq import RabbitLink
from dispatcher.settings import load_settings
from tests.conformance.stream_world import Gateway, Storyteller, Told, open_gateway, open_storyteller

PIECES = 20


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Two replicas and an agent."""

    gateways: tuple[Gateway, Gateway]
    agent: Storyteller


@pytest.fixture
async def fleet(postgres_url: str, amqp_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    prefix = f"stream-{secrets.token_hex(4)}"
    settings = load_settings(
        data_dir=tmp_path,
        store={"url": postgres_url},
        broker={"url": amqp_url, "prefix": prefix},
        encoder={"name": "hashing"},
        auth={"development": True},
    )
    await upgrade_storage(settings)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(open_gateway(settings))
        second = await stack.enter_async_context(open_gateway(settings))
        link = RabbitLink(amqp_url, Topology(prefix=prefix), InstanceId(new_id()))
        await stack.enter_async_context(link)
        agent = await stack.enter_async_context(open_storyteller(link, "rabbitmq"))
        yield Fleet(gateways=(first, second), agent=agent)


async def test_both_replicas_tell_the_same_whoever_collected_it(fleet: Fleet) -> None:
    first, second = fleet.gateways
    async with asyncio.TaskGroup() as group, first.posted() as here:
        begun = await here.until("accepted")
        request_id = begun[0].data["request_id"]
        there = group.create_task(_follow(second, request_id))
        task = await fleet.agent.task()
        for sequence in range(PIECES):
            await fleet.agent.say(task, sequence, str(sequence))
        told = [*begun]
        for _ in range(PIECES):
            told += await here.until("partial")
        await fleet.agent.end(task, "The end.")
        told += await here.rest()

    sequences = [event.data["sequence"] for event in told if event.event == "partial"]
    assert sequences == list(range(PIECES))
    assert await there == told


async def test_a_stream_goes_on_at_the_other_replica(fleet: Fleet) -> None:
    first, second = fleet.gateways
    async with first.posted() as here:
        begun = await here.until("accepted")
        task = await fleet.agent.task()
        await fleet.agent.say(task, 0, "Once")
        begun += await here.until("partial")
        first.running.stop()
        assert await here.rest() == []
    await fleet.agent.say(task, 1, "upon")
    async with second.followed(task.request_id, after=begun[-1].id) as there:
        rest = await there.until("partial")
        await fleet.agent.end(task, "Once upon")
        rest += await there.rest()
    async with second.followed(task.request_id) as there:
        all_of_it = await there.rest()

    assert [event.event for event in rest] == ["partial", "result", "answer"]
    assert [*begun, *rest] == all_of_it


async def _follow(gateway: Gateway, request_id: str) -> list[Told]:
    async with gateway.followed(request_id) as reader:
        return await reader.rest()
