"""Frames of one turn leave in one write, in order, and none stays behind; what the library gets to read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from pamqp import frame
from pamqp.commands import Basic
from pamqp.heartbeat import Heartbeat
from yarl import URL

from dispatcher.amqp.lane import Sorter
from dispatcher.amqp.transport import SortedReader, TurnTransports, TurnWriter
from dispatcher.clock import SystemClock
from tests.amqp.builders import CHANNEL, Broker, say_nothing

LIMIT_S = 5


@dataclass
class Socket:
    """A transport that keeps what it was told to write."""

    written: list[bytes] = field(default_factory=list)
    is_closed: bool = False
    has_ended: bool = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written.append(data)

    def write_eof(self) -> None:
        self.has_ended = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class Protocol(asyncio.StreamReaderProtocol):
    """One whose transport is never full."""

    async def _drain_helper(self) -> None:
        return


@asynccontextmanager
async def writer(socket: Socket) -> AsyncIterator[TurnWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    transport = cast("asyncio.WriteTransport", socket)
    made = TurnWriter(transport, Protocol(reader, loop=loop), reader, loop)
    yield made
    made.close()


async def test_what_is_written_in_one_turn_leaves_in_one_write():
    socket = Socket()

    async with writer(socket) as frames:
        frames.write(b"one ")
        frames.write(b"two")
        at_once = list(socket.written)
        await SystemClock().sleep(0)
        frames.write(b"three")
        await SystemClock().sleep(0)

    assert (at_once, socket.written) == ([], [b"one two", b"three"])


async def test_a_drain_leaves_nothing_behind():
    socket = Socket()

    async with writer(socket) as frames:
        frames.write(b"one")
        await frames.drain()
        drained = list(socket.written)

    assert drained == [b"one"]


async def test_the_last_frame_is_written_before_the_end():
    socket = Socket()

    async with writer(socket) as frames:
        frames.write(b"bye")
        frames.write_eof()

    assert (socket.written, socket.has_ended) == ([b"bye"], True)


async def test_what_is_left_at_a_close_is_written():
    socket = Socket()

    async with writer(socket) as frames:
        frames.write(b"bye")

    assert (socket.written, socket.is_closed) == ([b"bye"], True)


async def test_a_connection_that_was_lost_takes_nothing_more():
    socket = Socket()

    async with writer(socket) as frames:
        frames.write(b"late")
        socket.is_closed = True
        await SystemClock().sleep(0)

    assert socket.written == []


ACK = frame.marshal(Basic.Ack(1), CHANNEL)


async def reader() -> SortedReader:
    """Of a connection whose acknowledgements are a lane's."""
    sorter = Sorter()
    sorter.add(Broker(say_nothing).lane)
    return SortedReader(sorter, asyncio.get_running_loop())


async def test_the_library_reads_a_sign_of_life_where_all_that_came_was_a_lanes():
    reading = await reader()

    for _ in range(3):
        reading.feed_data(ACK)
    reading.feed_eof()

    assert await reading.read() == Heartbeat().marshal()


async def test_the_library_reads_what_is_its_own():
    reading = await reader()
    begun = frame.marshal(Basic.ConsumeOk("c"), CHANNEL)

    reading.feed_data(begun + ACK)
    reading.feed_data(ACK + begun)
    reading.feed_eof()

    assert await reading.read() == begun + begun


async def test_the_library_reads_the_half_of_a_frame_that_came_before_the_end():
    reading = await reader()

    reading.feed_data(Heartbeat().marshal() + ACK[:10])
    reading.feed_eof()

    assert await reading.read() == Heartbeat().marshal() + ACK[:10]


async def test_the_end_of_a_connection_is_told_twice():
    reading = await reader()

    reading.feed_data(Heartbeat().marshal() + ACK[:10])
    reading.feed_eof()
    reading.feed_eof()

    assert await reading.read() == Heartbeat().marshal() + ACK[:10]


async def test_the_beginning_of_a_frame_is_waited_for_before_there_is_a_lane():
    reading = SortedReader(Sorter(), asyncio.get_running_loop())
    begun = frame.marshal(Basic.ConsumeOk("c"), CHANNEL)

    reading.feed_data(begun[:10])
    reading.feed_data(begun[10:])
    reading.feed_eof()

    assert await reading.read() == begun


async def test_a_connection_that_the_broker_ends_without_a_word_is_closed():
    async def hang_up(_: asyncio.StreamReader, broker: asyncio.StreamWriter) -> None:
        broker.close()

    async with asyncio.timeout(LIMIT_S), await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reading, writing = await TurnTransports().create(
            URL(f"amqp://127.0.0.1:{port}"), ssl_context_provider=None
        )
        rest = await reading.read()
        writing.close()
        await writing.wait_closed()

    assert rest == b""


async def test_there_is_no_lane_without_a_connection():
    with pytest.raises(ConnectionError):
        TurnTransports().lane(Broker().channel)
