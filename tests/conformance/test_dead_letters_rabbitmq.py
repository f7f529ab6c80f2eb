"""What RabbitMQ gave up becomes a dead letter with its cause, and its request ends at once."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aio_pika
import httpx2
import pytest

from dispatcher.amqp.alongside import alongside
from dispatcher.assembly.running import open_dispatcher
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId, InstanceId, new_id
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import Topology
from dispatcher.sdk.rabbitmq import RabbitLink
from dispatcher.settings import load_settings

CLOCK = AgentId("clock")
DEADLINE_S = 30.0
"""Far less than a request's own, 120 s."""
DECLARATION = {
    "channel": "rabbitmq",
    "max_load": 1,
    "capabilities": [{"name": "time.tell", "descriptions": ["Tells the time."], "idempotent": True}],
}


@dataclass(frozen=True, kw_only=True)
class World:
    """A dispatcher on the broker, and the registered agent `clock` of which no instance consumes yet."""

    client: httpx2.AsyncClient
    link: RabbitLink
    topology: Topology
    amqp_url: str

    async def letters(self) -> list[dict[str, Any]]:
        """What is dead, as soon as something is."""
        async with asyncio.timeout(DEADLINE_S):
            while not (letters := (await self.client.get("/v1/dead")).json()["dead_letters"]):
                await SystemClock().sleep(0.05)
        assert isinstance(letters, list)
        return letters

    async def settle_each(self, settlement: Settlement) -> None:
        """An instance that never does anything with what it gets."""
        async with self.link.deliveries(CLOCK, 1) as deliveries:
            async for delivery in deliveries:
                await delivery.settle(settlement)


@pytest.fixture
async def world(amqp_url: str, tmp_path: Path) -> AsyncIterator[World]:
    topology = Topology(prefix=f"dead-{secrets.token_hex(4)}")
    settings = load_settings(
        data_dir=tmp_path,
        broker={"url": amqp_url, "prefix": topology.prefix},
        encoder={"name": "hashing"},
        auth={"development": True},
    )
    await upgrade_storage(settings)
    instance_id = new_id()
    instance = {"agent_id": CLOCK, "instance_name": "one", "instance_id": instance_id, "inbox": "memory"}
    async with open_dispatcher(settings) as running:
        transport = httpx2.ASGITransport(app=running.app)
        async with (
            httpx2.AsyncClient(transport=transport, base_url="http://dispatcher", timeout=60) as client,
            RabbitLink(amqp_url, topology, InstanceId(instance_id)) as link,
        ):
            await link.ready()
            registered = await client.post("/v1/agents", json={**instance, "declaration": DECLARATION})
            assert registered.status_code == 201, registered.text
            yield World(client=client, link=link, topology=topology, amqp_url=amqp_url)


@pytest.mark.parametrize(
    ("settlement", "code"), [(Settlement.REQUEUE, "delivery_limit"), (Settlement.DEAD, "rejected")]
)
async def test_what_kills_or_repels_whoever_gets_it_ends_its_request_at_once(
    world: World, settlement: Settlement, code: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), alongside(world.settle_each(settlement)):
        body = {"message": "what time is it", "capability": "time.tell"}
        answer = (await world.client.post("/v1/chat", json=body)).json()

    (letter,) = await world.letters()

    assert (answer["status"], answer["parts"][0]["error"]["code"]) == ("failed", code)
    assert (letter["request_id"], letter["cause"], letter["agent_id"]) == (
        answer["request_id"],
        "poison",
        CLOCK,
    )


async def test_junk_in_an_agents_queue_is_kept_with_the_agents_name(world: World) -> None:
    async with await aio_pika.connect(world.amqp_url) as connection:
        channel = await connection.channel()
        exchange = await channel.get_exchange(world.topology.task_exchange)
        await exchange.publish(aio_pika.Message(b"\xff junk"), routing_key=CLOCK)

    async with alongside(world.settle_each(Settlement.DEAD)):
        (letter,) = await world.letters()

    shown = (await world.client.get(f"/v1/dead/{letter['dead_id']}")).json()
    assert (shown["cause"], shown["error_code"], shown["source"]) == ("poison", "rejected", CLOCK)
    assert (shown["body"], shown["size_bytes"]) == ("\ufffd junk", 6)


async def test_a_result_that_nobody_can_read_is_kept(world: World) -> None:
    await world.link.publish_result(b"junk")

    (letter,) = await world.letters()

    assert (letter["cause"], letter["source"], letter["request_id"]) == ("poison", "results", None)
