"""A gateway behind a real HTTP server, an agent that tells its results in pieces, and readers of streams."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.cli.serve import listening, serve_app
from dispatcher.identifiers import AgentId, new_id
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.frames import (
    PartialFrame,
    ProgressFrame,
    RegisterFrame,
    ResultBody,
    ResultFrame,
    ResultStatus,
    StartedFrame,
    TaskFrame,
)
from dispatcher.protocol.link import Delivery, Link, Settlement
from dispatcher.sdk.agent import ChannelKind
from dispatcher.settings import Settings

DEADLINE_S = 15
STORYTELLER = AgentId("storyteller")
STORY = {"message": "tell me a story", "capability": "story.tell"}


@dataclass(frozen=True, kw_only=True)
class Told:
    """One event as its reader got it."""

    id: str
    event: str
    data: Any


class Reader:
    """Reads one response event by event."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()
        self.comments = 0

    async def next(self) -> Told | None:
        """The next event; None where the stream ends."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(DEADLINE_S):
            async for line in self._lines:
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    return Told(id=fields["id"], event=fields["event"], data=json.loads(fields["data"]))
        return None

    async def until(self, event: str) -> list[Told]:
        """All events up to the first of a kind."""
        told: list[Told] = []
        while not told or told[-1].event != event:
            following = await self.next()
            assert following is not None, f"the stream ended without {event!r}: {told}"
            told.append(following)
        return told

    async def rest(self) -> list[Told]:
        """All events up to the end of the stream."""
        told: list[Told] = []
        while (following := await self.next()) is not None:
            told.append(following)
        return told


class SlowReader:
    """Asks for a stream and takes nothing of it until it is told to."""

    def __init__(self, port: int, path: str) -> None:
        self.received = b""
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(("127.0.0.1", port))
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())

    def rest(self) -> list[str]:
        """Read to the end of the connection; the ids of the events that came whole."""
        with self._socket, contextlib.suppress(ConnectionResetError):
            while chunk := self._socket.recv(65_536):
                self.received += chunk
        whole, _, _ = self.received.decode().rpartition("\n\n")
        return re.findall(r"^id: (\S+)\r?$", whole, re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """One replica, and a client of it."""

    running: Running
    port: int
    client: httpx2.AsyncClient

    @asynccontextmanager
    async def posted(self, **headers: str) -> AsyncIterator[Reader]:
        """Ask for a story, and read what happens."""
        asked = {"Accept": "text/event-stream", **headers}
        async with self.client.stream("POST", "/v1/chat", json=STORY, headers=asked) as response:
            yield Reader(response)

    @asynccontextmanager
    async def followed(self, request_id: str, after: str | None = None) -> AsyncIterator[Reader]:
        """Follow a request from its first event, or from after one."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        path = f"/v1/requests/{request_id}/events"
        async with self.client.stream("GET", path, headers=headers) as response:
            yield Reader(response)

    async def until_nobody_waits(self) -> None:
        """Return once no client waits or reads a stream here."""
        async with asyncio.timeout(DEADLINE_S):
            while self.running.parts.books.waiters.taken:
                await self.client.get("/healthz")

    async def begin(self) -> str:
        """Ask for a story and leave; the request's id."""
        reply = await self.client.post("/v1/chat", json=STORY, headers={"Prefer": "respond-async"})
        assert reply.status_code == 202, reply.text
        return str(reply.json()["request_id"])


@dataclass(frozen=True, kw_only=True)
class Storyteller:
    """An agent whose every word the test says."""

    link: Link
    deliveries: AsyncIterator[Delivery]

    async def task(self) -> TaskFrame:
        """The next task; says that it is started."""
        async with asyncio.timeout(DEADLINE_S):
            delivery = await anext(self.deliveries)
        task = TaskFrame.model_validate_json(delivery.body)
        await delivery.settle(Settlement.ACK)
        await self.link.publish_signal(StartedFrame(**_signal(task)).model_dump_json().encode())
        return task

    async def say(self, task: TaskFrame, sequence: int, text: str) -> None:
        """One piece of the result."""
        piece = PartialFrame(**_signal(task), sequence=sequence, result=ResultBody(text=text))
        await self.link.publish_signal(piece.model_dump_json().encode())

    async def advance(self, task: TaskFrame, fraction: float, note: str) -> None:
        """How far it is."""
        progress = ProgressFrame(**_signal(task), fraction=fraction, note=note)
        await self.link.publish_result(progress.model_dump_json().encode())

    async def end(self, task: TaskFrame, text: str, status: ResultStatus = ResultStatus.SUCCESS) -> None:
        """The whole result."""
        retry = status is ResultStatus.ERROR
        result = ResultFrame(**_signal(task), status=status, result=ResultBody(text=text), can_retry=retry)
        await self.link.publish_result(result.model_dump_json().encode())


def _signal(task: TaskFrame) -> dict[str, Any]:
    return {
        "request_id": task.request_id,
        "task_id": task.task_id,
        "attempt": task.attempt,
        "token": task.token,
        "instance_id": "storyteller-one",
    }


@asynccontextmanager
async def open_gateway(settings: Settings, *, key: str = "") -> AsyncIterator[Gateway]:
    """A replica that serves on a port of its own until the block ends; it hardly buffers what it sends."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        running = await stack.enter_async_context(open_dispatcher(settings))
        serving = await stack.enter_async_context(asyncio.TaskGroup())
        serving.create_task(serve_app(running, listener))
        stack.callback(running.stop)
        port = listener.getsockname()[1]
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=DEADLINE_S)
        yield Gateway(running=running, port=port, client=await stack.enter_async_context(client))


@asynccontextmanager
async def open_storyteller(link: Link, channel: ChannelKind = "in-process") -> AsyncIterator[Storyteller]:
    """The agent, registered and at work."""
    capability = CapabilityDeclaration(name="story.tell", descriptions=["tells a story"], idempotent=True)
    frame = RegisterFrame(
        agent_id=STORYTELLER,
        instance_name="one",
        instance_id=new_id(),
        declaration=Declaration(channel=channel, capabilities=[capability]),
    )
    reply = json.loads(await link.call(frame.model_dump_json().encode()))
    assert reply["type"] == "registered", reply
    async with link.deliveries(STORYTELLER, 8) as deliveries:
        yield Storyteller(link=link, deliveries=deliveries)
