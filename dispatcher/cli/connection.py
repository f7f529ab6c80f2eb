"""HTTP connections that the application can drop, and that spare it what every request would cost."""

import asyncio
import socket
import struct

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dispatcher.gateway.receive import ARRIVED
from dispatcher.gateway.sse import ABORT

_AT_ONCE = struct.pack("ii", 1, 0)
"""`SO_LINGER` on, for no time: closing resets the connection."""


class Connection(HttpToolsProtocol):
    """Closing waits until a client took what is buffered for it; one that takes nothing can be dropped."""

    def on_headers_complete(self) -> None:
        """Offer the application `ABORT` and `ARRIVED`; an answer with a body begins in one piece."""
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:
            return
        self.scope["extensions"] = {
            ABORT: {"abort": self._drop},
            ARRIVED: {"body": self._take_body},
        }
        if self.scope["method"] != "HEAD":
            self.cycle.transport = _HeadWithBody(self.cycle)

    def _take_body(self, scope: object) -> bytes | None:
        """Take what the next `receive` would have told, if that were the whole body.

        One that other requests already follow on its connection is left to `receive`.
        """
        cycle = self.cycle
        if cycle.scope is not scope or cycle.more_body or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        self.flow.resume_reading()
        return body

    def _drop(self) -> None:
        """Reset the connection, so that neither this process nor its system keeps what was to be sent."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()


class _HeadWithBody(asyncio.Transport):
    """What a response is written to until its body begins.

    The head of a body of known length waits for the body's first piece, which follows at once: two
    writes are two system calls, and wake the client twice.
    """

    __slots__ = ("_cycle", "_head", "_transport")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        super().__init__()
        self._cycle = cycle
        self._transport = cycle.transport
        self._head = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep a head, pass on all else."""
        if not self._head and self._cycle.chunked_encoding is False:
            self._head = bytes(data)
        else:
            self._cycle.transport = self._transport
            self._transport.write(self._head + data)

    def is_closing(self) -> bool:
        """See `asyncio.Transport`."""
        return self._transport.is_closing()

    def close(self) -> None:
        """See `asyncio.Transport`."""
        if self._head:
            self.write(b"")
        self._transport.close()
