"""Frames of one turn leave in one write, in order, and none stays behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from dispatcher.amqp.transport import TurnWriter
from dispatcher.clock import SystemClock


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
