"""One HTTP/1.1 connection that costs next to nothing: the load must not be what is measured."""

import asyncio
from dataclasses import dataclass
from typing import cast

_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """A reply; every reply we ask for has a length."""

    status: int
    body: bytes


class HttpConnection(asyncio.Protocol):
    """Sends one request at a time and keeps the connection; a lost one is told by ConnectionError."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: asyncio.Future[HttpReply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionError(repr(exc)))

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._received += data
        end = self._received.find(_END)
        if end < 0:
            return
        start = end + len(_END)
        size = start + _content_length(bytes(self._received[:start]))
        if len(self._received) < size:
            return
        reply = HttpReply(status=int(self._received[9:12]), body=bytes(self._received[start:size]))
        del self._received[:size]
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(reply)

    @property
    def is_open(self) -> bool:
        """Whether the other side has not hung up, as servers do on those that stay idle."""
        return self._transport is not None and not self._transport.is_closing()

    async def send(self, request: bytes) -> HttpReply:
        """Send a whole request and wait for its reply."""
        if self._transport is None:
            raise ConnectionError("closed")
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


async def connect(address: tuple[str, int]) -> HttpConnection:
    """Open a connection; raises OSError where nobody listens."""
    _, connection = await asyncio.get_running_loop().create_connection(HttpConnection, *address)
    return connection


def _content_length(head: bytes) -> int:
    at = head.lower().find(_LENGTH)
    if at < 0:
        return 0
    return int(head[at + len(_LENGTH) :].partition(b"\r\n")[0])
