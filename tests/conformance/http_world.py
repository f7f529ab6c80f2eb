"""Agents on loopback for the HTTP channel's suite: a proper one, and one that sends any bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

from dispatcher.channel.http import HttpChannel, HttpRules
from dispatcher.channel.http_call import CallRules, CallTimes, HttpCaller
from dispatcher.channel.http_policy import LOOPBACK, AddressPolicy
from dispatcher.channel.result_intake import ResultRules
from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus, TaskFrame
from tests.conformance.channel_world import DEADLINE_S, RESULT_TRIES, Recorder

Answer = Callable[[TaskFrame], Awaitable[web.Response]]
CancelAnswer = Callable[[str], Awaitable[web.Response]]
Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


def taking(**seconds: float) -> CallRules:
    """Rules with these times for every call."""
    return CallRules(times=CallTimes(**seconds))


def result_of(task: TaskFrame, text: str = "done") -> ResultFrame:
    """What a proper agent answers."""
    return ResultFrame(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        token=task.token,
        instance_id="agent-1",
        status=ResultStatus.SUCCESS,
        result=ResultBody(text=text),
    )


async def gladly(_task_id: str) -> web.Response:
    """A cancellation was taken."""
    return web.Response(status=204)


async def at_once(task: TaskFrame) -> web.Response:
    """The result in the reply, with the task's own text."""
    return web.Response(body=result_of(task, task.payload.text).model_dump_json())


@dataclass
class Agent:
    """Keeps what it was posted and answers as told; `on_cancel` None knows nothing of cancellations."""

    answer: Answer = at_once
    on_cancel: CancelAnswer | None = gladly
    posts: list[tuple[TaskFrame, Mapping[str, str]]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    cancels: asyncio.Queue[tuple[str, Mapping[str, str]]] = field(default_factory=asyncio.Queue)

    async def next_cancel(self) -> tuple[str, Mapping[str, str]]:
        """Path and headers of the next cancellation, within the deadline."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.cancels.get()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its endpoint, while the block runs."""
        app = web.Application(client_max_size=2**21)
        app.router.add_post("/tasks", self._on_task)
        if self.on_cancel is not None:
            app.router.add_delete("/tasks/{task_id}", self._on_cancel)
        server = TestServer(app)
        await server.start_server()
        try:
            yield str(server.make_url("/tasks"))
        finally:
            await server.close()

    async def _on_task(self, request: web.Request) -> web.Response:
        task = TaskFrame.model_validate_json(await request.read())
        self.posts.append((task, request.headers))
        self.arrived.set()
        return await self.answer(task)

    async def _on_cancel(self, request: web.Request) -> web.Response:
        assert await request.read() == b""
        assert self.on_cancel is not None
        self.cancels.put_nowait((request.path_qs, request.headers))
        return await self.on_cancel(request.match_info["task_id"])


def sending(*pieces: bytes, pause_s: float = 0.0) -> Script:
    """A script of bytes, with a pause after each."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await SystemClock().sleep(pause_s)

    return script


@dataclass
class RawServer:
    """Answers every request with the bytes of a script; counts connections."""

    script: Script
    connections: int = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its endpoint, while the block runs."""
        server = await asyncio.start_server(self._on_connection, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/tasks"
        finally:
            server.close()
            await server.wait_closed()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            await self.script(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@dataclass(frozen=True, kw_only=True)
class World:
    """An open channel that knows one endpoint, and what it received."""

    channel: HttpChannel
    received: Recorder

    async def result(self) -> ResultFrame:
        """The first result, within the deadline."""
        await self.received.until(lambda: bool(self.received.results))
        return ResultFrame.model_validate_json(self.received.results[0])


@asynccontextmanager
async def channel_to(
    endpoint: str | None,
    *,
    call: CallRules | None = None,
    policy: AddressPolicy | None = None,
    per_agent: int = 64,
    send_wait_s: float = DEADLINE_S,
    close_within_s: float = DEADLINE_S,
) -> AsyncIterator[World]:
    """A channel of its own; everybody's endpoint is the given one."""
    allowed = policy or AddressPolicy(allowed=LOOPBACK)
    caller = HttpCaller(call or CallRules(), allowed)
    rules = HttpRules(
        calls_per_agent=per_agent,
        cancels_per_agent=per_agent,
        send_wait_s=send_wait_s,
        results=ResultRules(requeue_pause_s=0, tries=RESULT_TRIES),
    )
    received = Recorder()
    channel = HttpChannel(
        lambda _agent_id: endpoint, caller, rules=rules, close_within_s=lambda: close_within_s
    )
    async with channel.open(received.inbound()):
        yield World(channel=channel, received=received)
