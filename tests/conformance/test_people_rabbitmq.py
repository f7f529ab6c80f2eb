"""What people do, over a real broker: their own tool consumes the queue with plain AMQP."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aio_pika
import httpx2
import pytest
from aio_pika.abc import AbstractIncomingMessage

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.clock import SystemClock
from dispatcher.protocol.handoff import HandoffFrame
from dispatcher.protocol.topology import Topology
from dispatcher.settings import load_settings

DEADLINE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class World:
    """A dispatcher on the broker that hands over what is out of scope; nobody is registered."""

    running: Running
    client: httpx2.AsyncClient
    topology: Topology
    amqp_url: str

    async def ask(self, message: str, **more: str) -> dict[str, Any]:
        body = {"message": message, **more}
        answer: dict[str, Any] = (await self.client.post("/v1/chat", json=body)).json()
        return answer

    async def told(self, count: int) -> Sequence[AbstractIncomingMessage]:
        """So many messages of people's queue, as somebody's tool consumes them."""
        await self.published()
        found: list[AbstractIncomingMessage] = []
        async with asyncio.timeout(DEADLINE_S), await aio_pika.connect(self.amqp_url) as connection:
            queue = await (await connection.channel()).get_queue(self.topology.people_queue)
            async with queue.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    found.append(message)
                    if len(found) == count:
                        break
        return found

    async def published(self) -> Sequence[dict[str, Any]]:
        """What waits for a person, as soon as the broker has all of it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                listed = (await self.client.get("/v1/handoffs")).json()["handoffs"]
                if all(one["published_ms"] is not None for one in listed):
                    return list(listed)
                await SystemClock().sleep(0.05)


@pytest.fixture
async def world(amqp_url: str, tmp_path: Path) -> AsyncIterator[World]:
    topology = Topology(prefix=f"people-{secrets.token_hex(4)}")
    settings = load_settings(
        data_dir=tmp_path,
        broker={"url": amqp_url, "prefix": topology.prefix},
        encoder={"name": "hashing"},
        auth={"development": True},
        routing={"fallback": "people", "semantic": True},
    )
    await upgrade_storage(settings)
    async with open_dispatcher(settings) as running:
        transport = httpx2.ASGITransport(app=running.app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://dispatcher", timeout=60
        ) as client:
            yield World(running=running, client=client, topology=topology, amqp_url=amqp_url)


async def test_a_tool_of_theirs_takes_what_is_handed_over_and_answers_over_http(world: World) -> None:
    asked = await world.ask("tell me a joke")

    (message,) = await world.told(1)
    frame = HandoffFrame.model_validate_json(message.body)
    reply = await world.client.post(f"/v1/handoffs/{frame.task_id}/answer", json={"answer": "knock knock"})
    seen = (await world.client.get(f"/v1/requests/{asked['request_id']}")).json()

    assert (message.message_id, message.type, message.correlation_id) == (
        f"{asked['request_id']}.0",
        "handoff",
        asked["request_id"],
    )
    assert (frame.text, frame.message, frame.reason) == (
        "tell me a joke",
        "tell me a joke",
        "nothing_registered",
    )
    assert reply.status_code == 200
    assert seen["parts"][0]["handoff"]["answer"] == "knock knock"


async def test_each_part_is_told_once_where_nothing_breaks(world: World) -> None:
    texts = [f"tell me joke number {number}" for number in range(5)]
    for text in texts:
        await world.ask(text)

    listed = await world.published()
    told = [json.loads(message.body)["text"] for message in await world.told(5)]

    assert told == texts == [one["text"] for one in listed]
    assert await world.running.parts.people.publish() == 0


async def test_what_was_answered_before_the_broker_had_it_is_not_told(world: World) -> None:
    """The list is as good as the queue; a lost confirmation tells again what was told already."""
    await world.ask("tell me a joke")
    (message,) = await world.told(1)
    (waiting,) = await world.published()

    await world.client.post(f"/v1/handoffs/{waiting['task_id']}/answer", json={"answer": "no"})

    assert message.message_id == waiting["task_id"]
    assert not await world.running.parts.people.repository.claim_unpublished(10)


async def test_the_person_is_told_what_the_caller_described(world: World) -> None:
    """The message alone says nothing here."""
    await world.ask("#4711", capability="cancel an order", match="semantic")

    (message,) = await world.told(1)
    frame = HandoffFrame.model_validate_json(message.body)

    assert (frame.text, frame.message, frame.described) == ("#4711", "#4711", "cancel an order")
    assert [one["described"] for one in await world.published()] == ["cancel an order"]


async def test_a_queue_that_exists_otherwise_is_told_aloud_until_it_is_gone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    name, people = world.topology.people_queue, world.running.parts.people
    async with await aio_pika.connect(world.amqp_url) as connection:
        channel = await connection.channel()
        await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
        await world.ask("tell me a joke")

        told = [await people.publish() for _ in range(3)]
        refused = await world.client.get("/readyz")
        await channel.queue_delete(name)
    (message,) = await world.told(1)
    ready = await world.client.get("/readyz")

    assert told == [0, 0, 0]
    assert (refused.status_code, ready.status_code) == (503, 200)
    assert refused.json()["parts"] == {
        "people": f"queue {name} exists with other arguments; delete it, or set another broker.prefix"
    }
    assert message.message_id
    lines = [record.msg for record in caplog.records if record.levelname == "ERROR"]
    assert lines == ["handoff.queue_unusable"]
