"""Streams over bare ASGI: clients that leave, take nothing, or meet an error."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.gateway.sse import ABORT, EventStream, Stream, encode_event

DEADLINE_S = 5


class Client:
    """A connection whose client takes `takes` messages and then no more, until it is dropped."""

    def __init__(self, takes=100):
        self.takes = takes
        self.got = []
        self.gone = asyncio.Event()
        self.served = asyncio.Event()
        self.scope = {"type": "http", "extensions": {ABORT: {"abort": self.gone.set}}}

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if len(self.got) >= self.takes:
            await asyncio.Event().wait()
        self.got.append(message)
        if message.get("body"):
            self.served.set()

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.got)


async def run(chunks, client, stall_s=DEADLINE_S, otherwise=None):
    """Answer the client with these chunks; True if the stream was closed properly."""
    closed = []

    @asynccontextmanager
    async def opened():
        yield Stream(chunks=chunks, headers={"Location": "/here"}, otherwise=otherwise)
        closed.append(True)

    async with asyncio.timeout(DEADLINE_S):
        await EventStream(opened, stall_s)(client.scope, client.receive, client.send)
    return bool(closed)


async def endless():
    while True:
        yield b"x"
        await asyncio.Event().wait()


async def several():
    yield b"a"
    yield b"b"


async def nothing():
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk


async def unavailable():
    for failure in (UnavailableError("gone"),):
        raise failure
    yield b""


async def breaks():
    yield b"a"
    raise ValueError("late")


async def test_pieces_are_sent_one_by_one_and_the_stream_is_ended():
    client = Client()

    assert await run(several(), client)

    assert [m.get("body") for m in client.got] == [None, b"a", b"b", b""]
    assert [m.get("more_body") for m in client.got[1:]] == [True, True, False]
    headers = dict(client.got[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream"
    assert headers[b"location"] == b"/here"
    assert b"content-length" not in headers


async def test_a_client_that_leaves_ends_the_stream():
    client = Client()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(endless(), client))
        async with asyncio.timeout(DEADLINE_S):
            await client.served.wait()
        client.gone.set()

    assert running.result()
    assert client.got[-1]["more_body"]


@pytest.mark.parametrize("takes", [0, 1, 2])
async def test_a_client_that_takes_nothing_is_dropped(takes):
    client = Client(takes=takes)

    assert await run(several(), client, stall_s=0.01)

    assert client.gone.is_set()
    assert len(client.got) == takes


async def test_where_no_connection_can_be_dropped_the_response_stays_unfinished():
    client = Client(takes=2)
    del client.scope["extensions"]

    assert await run(several(), client, stall_s=0.01)

    assert not client.gone.is_set()


async def test_no_pieces_at_all_are_no_content():
    client = Client()

    await run(nothing(), client)

    assert client.got[0]["status"] == 204


async def test_an_error_before_the_first_piece_is_an_ordinary_one():
    client = Client()

    await run(unavailable(), client)

    assert client.got[0]["status"] == 503
    assert (b"content-type", b"application/problem+json") in client.got[0]["headers"]


async def test_an_error_later_is_not_swallowed():
    client = Client()

    with pytest.raises(ExceptionGroup) as caught:
        await run(breaks(), client)

    assert caught.group_contains(ValueError)
    assert client.body == b"a"


def test_an_event_has_an_id_a_name_and_one_line_of_data():
    assert encode_event("plan", "x-1", b"{}") == b"id: x-1\nevent: plan\ndata: {}\n\n"
