"""A gateway, an agent of ours and one in Node, and a tap that sees what goes over the wire."""

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
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

    async def dead_letter(self) -> str:
        """The body of the newest message that was given up, as the dispatcher keeps it."""
        async with asyncio.timeout(DEADLINE_S):
            while not (found := (await self.client.get(f"{self.url}/v1/dead")).json()["dead_letters"]):
                await SystemClock().sleep(0.1)
        letter = await self.client.get(f"{self.url}/v1/dead/{found[0]['dead_id']}")
        return str(letter.json()["body"])

    async def ask(self, message: str) -> dict[str, Any]:
        """The gateway's answer."""
        reply = await self.client.post(f"{self.url}/v1/chat", json={"message": message, "user_id": "u1001"})
        document: dict[str, Any] = reply.json()
        return document


@pytest.fixture
def topology() -> Topology:
    """Names of this test's own."""
    return Topology(prefix=f"interop-{secrets.token_hex(4)}")


@pytest.fixture
def processes(
    postgres_url: str, amqp_url: str, topology: Topology, tmp_path: Path
) -> Iterator[tuple[Program, Program, Program]]:
    """Gateway, order agent, library agent; the last one has nothing but the document."""
    packages.require()
    variables = {
        "DISPATCHER_STORE__URL": postgres_url,
        "DISPATCHER_BROKER__URL": amqp_url,
        "DISPATCHER_BROKER__PREFIX": topology.prefix,
    }
    document = tmp_path / "asyncapi.json"
    document.write_text(json.dumps(asyncapi(topology)), encoding="utf-8")
    ours = (sys.executable, "-m", "agents.order", "--broker", amqp_url, "--prefix", topology.prefix)
    theirs = ("node", str(packages.FOLDER / "agent.mjs"), "--document", str(document), "--broker", amqp_url)
    with ExitStack() as stack:
        order = stack.enter_context(Program(*ours))  # waits for a dispatcher
        assert run(*dispatcher("upgrade"), variables=variables).returncode == 0
        gateway = Program(*dispatcher("run", "--development", "--port", "0"), variables=variables)
        stack.enter_context(gateway).wait_for("listening on")
        library = stack.enter_context(Program(*theirs))
        order.wait_for("registration.granted")
        library.wait_for('"ready"')
        yield gateway, order, library


@pytest.fixture
async def fleet(
    processes: tuple[Program, Program, Program], amqp_url: str, topology: Topology
) -> AsyncIterator[Fleet]:
    """Everything at work."""
    gateway, order, library = processes
    url = gateway.wait_for(r"listening on (http://\S+)")[1]
    async with httpx2.AsyncClient(timeout=30) as client, _tap(amqp_url, topology) as tap:
        yield Fleet(url, asyncapi(topology), gateway, order, library, client, tap)
