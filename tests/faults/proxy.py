"""A TCP proxy that a test breaks on purpose: cut, half-open, slow, closed. Loopback only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from dispatcher.clock import Clock, SystemClock
from tests.services.ports import LOOPBACK

_CHUNK = 65_536


class Proxy:
    """Forwards connections from a port of its own to `upstream` on loopback; obeys at once."""

    def __init__(self, upstream: int, clock: Clock | None = None) -> None:
        self.upstream = upstream
        self.port = 0
        self.accepted = 0
        self._clock = clock or SystemClock()
        self._gates: set[asyncio.Event] = set()
        self._is_holding = False
        self._delay_s = 0.0
        self._muting: bytes | None = None
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._far_writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        """Listen until the block ends; whatever is open is then cut."""
        server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._refusing = True
            self.resume()
            self.cut()
            await server.wait_closed()

    def cut(self) -> None:
        """Reset every connection, in the middle of whatever it carries; new ones are taken again."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def hold(self, *, new_ones_too: bool = True) -> None:
        """Make connections half-open: nothing is forwarded and nothing is closed until `resume`."""
        self._is_holding = new_ones_too
        for gate in self._gates:
            gate.clear()

    def orphan(self) -> None:
        """Reset every connection at its far end only: whoever is at the near one hears nothing of it."""
        self.hold(new_ones_too=False)
        for writer in tuple(self._far_writers):
            writer.transport.abort()

    def resume(self) -> None:
        """Forward again, beginning with what was held back."""
        self._is_holding = False
        for gate in self._gates:
            gate.set()

    def refuse(self, *, refusing: bool = True) -> None:
        """Cut new connections as soon as they come, or stop doing so."""
        self._refusing = refusing

    def delay(self, seconds: float) -> None:
        """Hold back each piece of data for so long; 0 ends it."""
        self._delay_s = seconds

    def mute(self, marker: bytes) -> None:
        """From now on, whoever sends `marker` on a connection gets no answer on it any more; b"" ends it."""
        self._muting = marker or None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self.upstream)
        except OSError:
            writer.transport.abort()
            return
        self.accepted += 1
        ends, gate, muted = {writer, far_writer}, asyncio.Event(), asyncio.Event()
        if not self._is_holding:
            gate.set()
        self._writers |= ends
        self._far_writers.add(far_writer)
        self._gates.add(gate)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(self._listen(reader, muted), far_writer, gate))
                group.create_task(self._pump(self._answer(far_reader, muted), writer, gate))
        finally:
            self._writers -= ends
            self._far_writers.discard(far_writer)
            self._gates.discard(gate)
            for end in ends:
                end.transport.abort()

    async def _listen(self, source: asyncio.StreamReader, muted: asyncio.Event) -> AsyncIterator[bytes]:
        while data := await source.read(_CHUNK):
            if self._muting is not None and self._muting in data:
                muted.set()
            yield data

    async def _answer(self, source: asyncio.StreamReader, muted: asyncio.Event) -> AsyncIterator[bytes]:
        while data := await source.read(_CHUNK):
            if not muted.is_set():
                yield data

    async def _pump(
        self, source: AsyncIterator[bytes], target: asyncio.StreamWriter, gate: asyncio.Event
    ) -> None:
        with suppress(OSError):
            async for data in source:
                await gate.wait()
                if self._delay_s:
                    await self._clock.sleep(self._delay_s)
                target.write(data)
                await target.drain()
            await gate.wait()
        with suppress(OSError):
            if target.can_write_eof():
                target.write_eof()
