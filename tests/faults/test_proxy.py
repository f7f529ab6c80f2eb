"""The proxy breaks connections in the ways it says, and only then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.faults.proxy import Proxy
from tests.services.ports import LOOPBACK

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while data := await reader.read(1024):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def _proxied() -> AsyncIterator[tuple[Proxy, Streams]]:
    server = await asyncio.start_server(_echo, LOOPBACK, 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]).running() as proxy:
        streams = await asyncio.open_connection(LOOPBACK, proxy.port)
        try:
            yield proxy, streams
        finally:
            streams[1].close()


async def _say(streams: Streams, text: bytes) -> bytes:
    streams[1].write(text)
    async with asyncio.timeout(5):
        return await streams[0].readexactly(len(text))


async def test_it_forwards_both_ways() -> None:
    async with _proxied() as (_, streams):
        assert await _say(streams, b"hello") == b"hello"


async def test_a_cut_ends_open_connections_and_takes_new_ones() -> None:
    async with _proxied() as (proxy, streams):
        await _say(streams, b"hello")
        proxy.cut()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await _say(streams, b"still there?")

        again = await asyncio.open_connection(LOOPBACK, proxy.port)
        assert await _say(again, b"again") == b"again"
        again[1].close()


async def test_a_half_open_connection_is_silent_until_it_is_resumed() -> None:
    async with _proxied() as (proxy, streams):
        await _say(streams, b"hello")
        proxy.hold()
        streams[1].write(b"later")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await streams[0].read(1)
        proxy.resume()
        async with asyncio.timeout(5):
            assert await streams[0].readexactly(5) == b"later"


async def test_only_open_connections_are_held_where_new_ones_are_to_work() -> None:
    async with _proxied() as (proxy, streams):
        await _say(streams, b"hello")
        proxy.hold(new_ones_too=False)

        again = await asyncio.open_connection(LOOPBACK, proxy.port)
        assert await _say(again, b"again") == b"again"
        again[1].close()


async def test_it_refuses_and_delays() -> None:
    async with _proxied() as (proxy, streams):
        proxy.delay(0.05)
        began = asyncio.get_running_loop().time()
        await _say(streams, b"slow")
        assert asyncio.get_running_loop().time() - began >= 0.1

        proxy.refuse()
        refused = await asyncio.open_connection(LOOPBACK, proxy.port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await _say(refused, b"anyone?")
        refused[1].close()


async def test_who_says_a_word_gets_no_answer_any_more() -> None:
    async with _proxied() as (proxy, streams):
        other = await asyncio.open_connection(LOOPBACK, proxy.port)
        proxy.mute(b"word")
        assert await _say(streams, b"hello") == b"hello"
        streams[1].write(b"a word")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await streams[0].read(1)
        assert await _say(other, b"hello") == b"hello"
        other[1].close()
