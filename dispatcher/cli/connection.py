"""HTTP connections that the application can drop."""

import socket
import struct

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dispatcher.gateway.sse import ABORT

_AT_ONCE = struct.pack("ii", 1, 0)
"""`SO_LINGER` on, for no time: closing resets the connection."""


class Connection(HttpToolsProtocol):
    """Closing waits until a client took what is buffered for it; one that takes nothing can be dropped."""

    def on_headers_complete(self) -> None:
        """Offer the application `ABORT` for the request that begins."""
        self.scope["extensions"] = {ABORT: {"abort": self._drop}}
        super().on_headers_complete()

    def _drop(self) -> None:
        """Reset the connection, so that neither this process nor its system keeps what was to be sent."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()
