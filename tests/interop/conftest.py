"""A gateway, an agent of ours and one in Node, and a tap that sees what goes over the wire."""

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aio_pika
import httpx2
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId
from dispatcher.protocol.asyncapi import asyncapi
from dispatcher.protocol.topology import RESULTS_KEY, Topology
from tests.interop import packages
from tests.scenario.crew import Crew
from tests.scenario.program import Program, dispatcher, run

LIBRARY = AgentId("library")
DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One message: its frame, and its basic properties under their names in AMQP."""

    frame: Mapping[str, Any]
    properties: Mapping[str, Any]


@dataclass
class Tap:
    """Copies of what is published to and by the agent in Node, and a way to publish beside the dispatcher."""

    channel: AbstractChannel
    topology: Topology
    tasks: asyncio.Queue[Seen]
    results: asyncio.Queue[Seen]

    async def task(self) -> Seen:
        """The next task frame."""
        return await asyncio.wait_for(self.tasks.get(), DEADLINE_S)

    async def result(self) -> Seen:
        """The next result frame."""
        return await asyncio.wait_for(self.results.get(), DEADLINE_S)

    async def publish(self, body: bytes) -> None:
        """Put a message into the agent's queue."""
        exchange = await self.channel.get_exchange(self.topology.task_exchange)
        await exchange.publish(aio_pika.Message(body), routing_key=LIBRARY)


def _seen(message: AbstractIncomingMessage) -> Seen:
    properties = {
        "content-type": message.content_type,
        "type": message.type,
        "message-id": message.message_id,
        "correlation-id": message.correlation_id,
        "reply-to": message.reply_to,
        "expiration": str(message.expiration) if message.expiration is not None else None,
        "delivery-mode": int(message.delivery_mode),
    }
    return Seen(json.loads(message.body), {n: value for n, value in properties.items() if value is not None})


async def _copies(channel: AbstractChannel, exchange: str, key: str) -> asyncio.Queue[Seen]:
    kept: asyncio.Queue[Seen] = asyncio.Queue()
    queue = await channel.declare_queue(exclusive=True)
    await queue.bind(exchange, key)

    async def keep(message: AbstractIncomingMessage) -> None:
        if message.body.startswith(b'{"'):
            kept.put_nowait(_seen(message))

    await queue.consume(keep, no_ack=True)
    return kept


@asynccontextmanager
async def _tap(url: str, topology: Topology) -> AsyncIterator[Tap]:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        tasks = await _copies(channel, topology.task_exchange, LIBRARY)
        results = await _copies(channel, topology.result_exchange, RESULTS_KEY)
        yield Tap(channel, topology, tasks, results)


@dataclass
class Fleet:
    """The processes, by what they are."""

    url: str
    document: Mapping[str, Any]
    gateway: Program
    order: Program
    library: Program
    client: httpx2.AsyncClient
    tap: Tap
    ran_before: int
    """How often the library agent ran anything for an earlier test."""

    @property
    def ran(self) -> int:
        """How often it did for this one."""
        return self.library.text.count('"ran"') - self.ran_before

    async def dead_letters(self) -> Sequence[str]:
        """The ids of what was given up, the newest first."""
        found = (await self.client.get(f"{self.url}/v1/dead")).json()["dead_letters"]
        return [letter["dead_id"] for letter in found]

    async def dead_letter(self, known: Sequence[str]) -> str:
        """The body of the newest message that was given up, once there is one beyond the known ones."""
        async with asyncio.timeout(DEADLINE_S):
            while (found := await self.dead_letters()) == known:
                await SystemClock().sleep(0.1)
        letter = await self.client.get(f"{self.url}/v1/dead/{found[0]}")
        return str(letter.json()["body"])

    async def ask(self, message: str) -> dict[str, Any]:
        """The gateway's answer."""
        reply = await self.client.post(f"{self.url}/v1/chat", json={"message": message, "user_id": "u1001"})
        document: dict[str, Any] = reply.json()
        return document


@pytest.fixture(scope="module")
def topology() -> Topology:
    """Names of these tests' own."""
    return Topology(prefix=f"interop-{secrets.token_hex(4)}")


@pytest.fixture(scope="module")
def crew(
    module_postgres_url: str, amqp_url: str, topology: Topology, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crew]:
    """Gateway, order agent, library agent; the last one has nothing but the document."""
    packages.require()
    variables = {
        "DISPATCHER_STORE__URL": module_postgres_url,
        "DISPATCHER_BROKER__URL": amqp_url,
        "DISPATCHER_BROKER__PREFIX": topology.prefix,
    }
    document = tmp_path_factory.mktemp("document") / "asyncapi.json"
    document.write_text(json.dumps(asyncapi(topology)), encoding="utf-8")
    ours = (sys.executable, "-m", "agents.order", "--broker", amqp_url, "--prefix", topology.prefix)
    theirs = ("node", str(packages.FOLDER / "agent.mjs"), "--document", str(document), "--broker", amqp_url)

    def gateway() -> Program:
        assert run(*dispatcher("upgrade"), variables=variables).returncode == 0
        started = Program(*dispatcher("run", "--development", "--port", "0"), variables=variables)
        started.wait_for("listening on")
        return started

    # The order agent comes first, and waits for a dispatcher.
    crew = Crew({"order": partial(Program, *ours), "gateway": gateway, "library": partial(Program, *theirs)})
    try:
        yield crew
    finally:
        crew.close()


@pytest.fixture
async def fleet(crew: Crew, amqp_url: str, topology: Topology) -> AsyncIterator[Fleet]:
    """Everything at work."""
    programs = crew.whole()
    gateway, order, library = (programs[name] for name in ("gateway", "order", "library"))
    order.wait_for("registration.granted")
    library.wait_for('"ready"')
    url = gateway.wait_for(r"listening on (http://\S+)")[1]
    async with httpx2.AsyncClient(timeout=30) as client, _tap(amqp_url, topology) as tap:
        ran = library.text.count('"ran"')
        yield Fleet(url, asyncapi(topology), gateway, order, library, client, tap, ran)
