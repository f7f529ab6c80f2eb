"""What goes over a connection, without a network: a wire that keeps what is written to it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from dispatcher.cli.connection import Connection
from dispatcher.gateway.receive import ARRIVED

App = Callable[[Any, Any, Any], Awaitable[None]]
LIMIT_S = 5
POST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody"
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """The other end reads nothing; all that was written is in `writes`."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


@contextmanager
def connected(app: App) -> Iterator[tuple[Connection, Wire]]:
    """A client's connection to an application."""
    config = uvicorn.Config(app, log_config=None, server_header=False, date_header=False, lifespan="off")
    connection, wire = Connection(config, ServerState(), {}), Wire()
    connection.connection_made(wire)
    yield connection, wire
    connection.connection_lost(None)


async def answered(app: App, request: bytes) -> Wire:
    """The wire once everything that was asked over it is done."""
    with connected(app) as (connection, wire):
        await finish(connection, request)
        return wire


async def finish(connection: Connection, data: bytes) -> None:
    connection.data_received(data)
    async with asyncio.timeout(LIMIT_S):
        while connection.tasks:
            await asyncio.gather(*connection.tasks)


def answering(body: bytes, *headers: tuple[bytes, bytes], status: int = 200) -> App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


@pytest.mark.parametrize("body", [b"done", b""])
async def test_an_answer_of_known_length_is_one_write(body: bytes):
    length = b"%d" % len(body)

    wire = await answered(answering(body, (b"content-length", length)), POST)

    assert wire.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: " + length + b"\r\n\r\n" + body]


async def test_every_answer_of_a_connection_that_is_kept_is_one_write():
    wire = await answered(answering(b"done", (b"content-length", b"4")), POST + GET + POST)

    assert [write[-4:] for write in wire.writes] == [b"done"] * 3


async def test_the_answer_to_head_has_no_body_to_wait_for():
    request = b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n"

    wire = await answered(answering(b"", (b"content-length", b"4")), request)

    assert wire.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"]


async def test_an_answer_without_a_body_goes_out():
    wire = await answered(answering(b"", status=204), POST)

    assert b"".join(wire.writes) == b"HTTP/1.1 204 No Content\r\n\r\n"


async def test_a_stream_begins_before_its_first_piece():
    begun = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await receive()

    with connected(app) as (connection, wire):
        connection.data_received(GET)
        async with asyncio.timeout(LIMIT_S):
            await begun.wait()

        assert wire.writes == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]


async def test_a_client_that_asks_whether_to_go_on_is_told_so_at_once():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["extensions"][ARRIVED]["body"](scope) is None
        await receive()
        await answering(b"done", (b"content-length", b"4"))(scope, receive, send)

    head = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n"
    with connected(app) as (connection, wire):
        connection.data_received(head)
        await asyncio.wait(connection.tasks, timeout=0)
        assert wire.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        await finish(connection, b"body")

    assert b"".join(wire.writes[1:]).endswith(b"done")


async def test_an_application_that_breaks_before_the_body_leaves_a_head_and_a_closed_connection():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        raise ValueError("late")

    wire = await answered(app, POST)

    assert wire.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"]
    assert wire.closed


async def test_a_body_that_is_all_here_is_taken_once():
    taken: list[bytes | None] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        taken.append(scope["extensions"][ARRIVED]["body"](scope))
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(receive())
            await asyncio.wait([reading], timeout=0)
            assert not reading.done()
            await answering(b"done", (b"content-length", b"4"))(scope, receive, send)
        assert reading.result() == {"type": "http.disconnect"}

    await answered(app, POST)

    assert taken == [b"body"]


async def test_a_body_that_others_follow_is_left_to_be_received():
    seen: list[object] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        taken = scope["extensions"][ARRIVED]["body"](scope)
        seen.append(taken if taken is not None else await receive())
        await answering(b"done", (b"content-length", b"4"))(scope, receive, send)

    await answered(app, POST + POST)

    assert seen == [{"type": "http.request", "body": b"body", "more_body": False}, b"body"]
