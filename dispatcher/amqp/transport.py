"""The socket below a connection, read and written past the library where a channel has a lane."""

import asyncio
from typing import Any

from aiormq import AMQPConnectionError, Channel, TransportFactory
from pamqp.heartbeat import Heartbeat
from yarl import URL

from dispatcher.amqp.lane import Lane, Sorter

_SIGN_OF_LIFE_S = 1.0


class SortedReader(asyncio.StreamReader):
    """What is left for the library to read.

    The library gives a connection up on which it reads nothing for some time, heartbeats at least. The
    broker sends none while it sends messages, and these are taken out: so the library reads one for them.
    """

    def __init__(self, sorter: Sorter, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._sorter = sorter
        self._now = loop.time
        self._fed_at = 0.0

    def feed_data(self, data: bytes) -> None:  # type: ignore[override] # sockets give nothing else
        """See `asyncio.StreamReader`."""
        rest = self._sorter.feed(data)
        if not rest and self._sorter.has_lanes and self._now() - self._fed_at > _SIGN_OF_LIFE_S:
            rest = Heartbeat().marshal()
        if rest:
            self._fed_at = self._now()
            super().feed_data(rest)

    def feed_eof(self) -> None:
        """See `asyncio.StreamReader`; called at the peer's last byte and again as the socket ends."""
        if rest := self._sorter.end():
            super().feed_data(rest)
        super().feed_eof()


class TurnWriter(asyncio.StreamWriter):
    """Gathers what is written in one turn and hands it to the transport at its end.

    The library writes frame by frame and uvloop sends each at once, which costs more than to make it.
    """

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        protocol: asyncio.StreamReaderProtocol,
        reader: asyncio.StreamReader,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(transport, protocol, reader, loop)
        self._call_soon = loop.call_soon
        self._gathered: list[bytes] = []

    def write(self, data: bytes) -> None:  # type: ignore[override] # the library writes nothing else
        """See `asyncio.StreamWriter`."""
        if not self._gathered:
            self._call_soon(self._hand_over)
        self._gathered.append(data)

    async def drain(self) -> None:
        """See `asyncio.StreamWriter`."""
        self._hand_over()
        await super().drain()

    def write_eof(self) -> None:
        """See `asyncio.StreamWriter`."""
        self._hand_over()
        super().write_eof()

    def close(self) -> None:
        """See `asyncio.StreamWriter`."""
        self._hand_over()
        super().close()

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and not self.is_closing():
            super().write(b"".join(gathered))


class TurnTransports(TransportFactory):
    """Opens the socket of one connection, with TLS for `amqps`; written to through a `TurnWriter`."""

    def __init__(self) -> None:
        self._sorter = Sorter()
        self._writer: TurnWriter | None = None

    async def create(
        self,
        url: URL,
        **options: Any,  # noqa: ANN401 - those of `create_connection`
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """See `aiormq.TransportFactory`."""
        provider = options.pop("ssl_context_provider")
        context = await provider.get_context() if url.scheme == "amqps" else None
        options |= {"host": url.host, "port": url.port, "ssl": context}
        loop = asyncio.get_running_loop()
        reader = SortedReader(self._sorter, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, **options)
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        self._writer = TurnWriter(transport, protocol, reader, loop)
        return reader, self._writer

    def lane(self, channel: Channel) -> Lane:
        """A lane for a channel of this connection, on which no message was published or consumed yet."""
        if self._writer is None:
            raise ConnectionError("never connected")
        lane = Lane(channel, self._writer.write)
        self._sorter.add(lane)
        return lane
