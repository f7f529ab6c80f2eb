"""The client that gives load, against a server that cuts its replies anywhere."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dispatcher.bench.http_connection import connect
from dispatcher.bench.http_load import became

REPLY = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 22\r\n\r\n{"status":"completed"}'
)
EMPTY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


@asynccontextmanager
async def serving(*pieces):
    """A server that answers whatever comes with these pieces, each in a segment of its own."""

    ended = asyncio.Event()

    async def answer(reader, writer):
        while pieces and await reader.read(1000):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        writer.close()
        ended.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        connection = await connect(server.sockets[0].getsockname()[:2])
        try:
            yield connection
        finally:
            connection.close()
            await ended.wait()


@pytest.mark.parametrize("cut", [1, 20, 70, len(REPLY) - 1])
async def test_a_reply_in_pieces_is_one_reply(cut):
    async with serving(REPLY[:cut], REPLY[cut:]) as connection:
        replies = [await connection.send(b"GET / HTTP/1.1\r\n\r\n") for _ in range(2)]

        assert [reply.body for reply in replies] == [b'{"status":"completed"}'] * 2
        assert became(replies[0]) == "completed"


async def test_a_reply_without_a_body_is_read_too():
    async with serving(EMPTY) as connection:
        reply = await connection.send(b"GET / HTTP/1.1\r\n\r\n")

        assert (reply.status, reply.body) == (503, b"")
        assert became(reply) == "refused"


async def test_a_connection_that_ends_is_told():
    async with serving() as connection:
        with pytest.raises(ConnectionError):
            await connection.send(b"GET / HTTP/1.1\r\n\r\n")
