"""The socket below a connection: all frames of one turn of the event loop leave in one system call."""

import asyncio
from typing import Any

from aiormq import AMQPConnectionError, TransportFactory
from yarl import URL


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
    """Opens sockets, with TLS for `amqps`, that are written to through a `TurnWriter`."""

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
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(lambda: protocol, **options)
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        return reader, TurnWriter(transport, protocol, reader, loop)
