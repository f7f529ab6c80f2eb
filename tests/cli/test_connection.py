"""What goes over a connection, without a network: a wire that keeps what is written to it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from pydantic import BaseModel
from uvicorn.server import ServerState

from dispatcher.cli.connection import Connection
from dispatcher.gateway.models import Problem, RequestReply
from dispatcher.gateway.receive import ARRIVED
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.whole import ANSWER
from tests.gateway.stubs import Api

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


class HeldLoop:
    """The running loop for all but time, which stands still; `timers` are those that were not cancelled."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.made: list[tuple[float, Callable[[], None], asyncio.TimerHandle]] = []

    def create_task(self, coroutine: Any) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(coroutine)

    def time(self) -> float:
        return self.now_s

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(0, call, (), asyncio.get_running_loop())
        self.made.append((self.now_s + seconds, call, handle))
        return handle

    @property
    def timers(self) -> list[float]:
        return [due for due, _, handle in self.made if not handle.cancelled()]

    def ring(self) -> None:
        """The time of the only timer has come."""
        ((self.now_s, call, _),), self.made = self.made, []
        call()


@contextmanager
def connected(app: App, loop: Any = None) -> Iterator[tuple[Connection, Wire]]:
    """A client's connection to an application."""
    config = uvicorn.Config(app, log_config=None, server_header=False, date_header=False, lifespan="off")
    connection, wire = Connection(config, ServerState(), {}, loop), Wire()
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


FIELDS = {"Location": "/v1/requests/1"}
ANSWERED = (
    b"HTTP/1.1 202 Accepted\r\nlocation: /v1/requests/1\r\ncontent-length: 7\r\n"
    b'content-type: application/json\r\n\r\n{"a":1}'
)
CLOSED = ANSWERED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
document = json_response({"a": 1}, status=202, headers=FIELDS)


async def piecemeal(scope: Any, receive: Any, send: Any) -> None:
    """The same document as a server without our extension would be told of it."""
    await document({**scope, "extensions": {}}, receive, send)


@pytest.mark.parametrize("app", [document, piecemeal])
@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (b"POST / HTTP/1.1\r\nhost: x", ANSWERED),
        (b"POST / HTTP/1.0\r\nhost: x", CLOSED),
        (b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close", CLOSED),
        (b"HEAD / HTTP/1.1\r\nhost: x", ANSWERED.removesuffix(b'{"a":1}')),
    ],
)
async def test_a_document_is_the_same_bytes_at_once_and_piece_by_piece(
    app: App, request_line: bytes, expected: bytes
):
    with connected(app) as (connection, wire):
        await finish(connection, request_line + b"\r\n\r\n")

        assert b"".join(wire.writes) == expected
        assert wire.closed == (expected is CLOSED)


async def test_a_document_is_one_write():
    wire = await answered(document, POST)

    assert wire.writes == [ANSWERED]


@pytest.mark.parametrize(
    ("body", "status", "form"),
    [
        (b'{"message": "hi"}', b"200", RequestReply),
        (b"{", b"422", Problem),
        (b'{"message": 1}', b"422", Problem),
    ],
)
async def test_what_a_message_is_answered_is_one_write(body: bytes, status: bytes, form: type[BaseModel]):
    head = b"POST /v1/chat HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: bearer ard_alice\r\n"

    wire = await answered(Api().app, head + b"content-length: %d\r\n\r\n" % len(body) + body)

    (write,) = wire.writes
    head, _, document = write.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    form.model_validate_json(document)


async def test_the_fields_that_the_server_sends_with_every_response_are_sent_with_a_document():
    with connected(document) as (connection, wire):
        connection.server_state.default_headers = [(b"date", b"today")]
        await finish(connection, GET)

    assert wire.writes == [ANSWERED.replace(b"location", b"date: today\r\nlocation")]


async def test_documents_for_requests_that_came_together_go_out_in_their_order():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await json_response(scope["method"])(scope, receive, send)

    wire = await answered(app, POST + GET + POST)

    assert re.findall(rb'"\w+"', b"".join(wire.writes)) == [b'"POST"', b'"GET"', b'"POST"']


async def test_a_document_goes_out_while_the_next_request_has_only_begun():
    with connected(document) as (connection, wire):
        await finish(connection, POST + GET[:9])
        await finish(connection, GET[9:])

    assert wire.writes == [ANSWERED, ANSWERED]


async def test_nothing_is_sent_to_a_client_that_left_or_twice():
    said: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        answer = scope["extensions"][ANSWER]["answer"]
        said.extend(answer(scope, 200, [(b"content-length", b"1")], b"x") for _ in range(2))

    wire = await answered(app, POST)
    with connected(app) as (connection, left):
        connection.data_received(POST)
        connection.connection_lost(ConnectionResetError())
        await asyncio.gather(*connection.tasks)

    assert said == [True, False, False, False]
    assert (len(wire.writes), left.writes) == (1, [])


async def test_a_document_waits_for_a_client_that_takes_nothing_for_now():
    with connected(document) as (connection, wire):
        connection.pause_writing()
        connection.data_received(POST)
        await asyncio.wait(connection.tasks, timeout=0)
        assert wire.writes == []

        connection.resume_writing()
        await finish(connection, b"")

    assert b"".join(wire.writes) == ANSWERED


async def test_who_is_answered_before_it_sent_its_body_is_not_told_to_go_on():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await document(scope, receive, send)
        assert await receive() == {"type": "http.disconnect"}

    head = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n"
    wire = await answered(app, head)

    assert b"".join(wire.writes) == ANSWERED


async def test_a_connection_is_closed_so_long_after_its_last_response_with_one_timer():
    loop = HeldLoop()
    with connected(document, loop) as (connection, wire):
        keeps_s = connection.timeout_keep_alive
        await finish(connection, POST)
        loop.now_s = 1.0
        await finish(connection, POST)
        assert loop.timers == [keeps_s]

        loop.ring()
        assert not wire.closed
        assert loop.timers == [1.0 + keeps_s]

        loop.ring()
        assert wire.closed


async def test_a_connection_with_a_request_under_way_is_not_idle():
    loop, goes_on = HeldLoop(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "GET":
            await goes_on.wait()
        await document(scope, receive, send)

    with connected(app, loop) as (connection, wire):
        await finish(connection, POST)
        connection.data_received(GET)
        loop.ring()
        assert not wire.closed
        assert loop.timers == []

        goes_on.set()
        await finish(connection, b"")
        assert loop.timers == [2 * connection.timeout_keep_alive]


async def test_a_connection_that_is_gone_leaves_no_timer():
    loop = HeldLoop()
    with connected(document, loop) as (connection, _):
        await finish(connection, POST)

    assert loop.timers == []
