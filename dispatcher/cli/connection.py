"""HTTP connections that the application can drop, and that spare it what every request would cost."""

import asyncio
import socket
import struct
from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from dispatcher.gateway.receive import ARRIVED
from dispatcher.gateway.sse import ABORT
from dispatcher.gateway.whole import ANSWER

_AT_ONCE = struct.pack("ii", 1, 0)
"""`SO_LINGER` on, for no time: closing resets the connection."""


class Connection(HttpToolsProtocol):
    """Closing waits until a client took what is buffered for it; one that takes nothing can be dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn's own
        """Prepare what every request of the connection is offered: `ABORT`, `ARRIVED` and `ANSWER`."""
        super().connection_made(transport)
        self._idle_since: float | None = None
        self._offered: dict[str, dict[object, object]] = {
            ABORT: {"abort": self._drop},
            ARRIVED: {"body": self._take_body},
            ANSWER: {"answer": self._answer},
        }

    def on_message_begin(self) -> None:
        """See `HttpToolsProtocol`."""
        super().on_message_begin()
        self.scope["extensions"] = self._offered

    def on_response_complete(self) -> None:
        """Go on as uvicorn does, with one timer for many requests: one for each is dear.

        An idle connection is closed `timeout_keep_alive` seconds after its last response.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_again_after(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """See `HttpToolsProtocol`: data arrives, or nothing more will."""
        self._idle_since = None

    def _look_again_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self.timeout_keep_alive_task = None
        if self._idle_since is None or not self.cycle.response_complete:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._look_again_after(left)
        else:
            self.timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `HttpToolsProtocol`."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

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

    def _answer(
        self, scope: object, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> bool:
        """Do what the two messages of a response would, in one write, if nothing has to be waited for.

        One that other requests already follow on its connection is left to `send`.
        """
        cycle = self.cycle
        is_its_turn = cycle.scope is scope and not (cycle.response_started or cycle.disconnected)
        if not is_its_turn or self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        fields = [b"%b: %b\r\n" % field for field in (*cycle.default_headers, *headers)]
        if not cycle.keep_alive:
            fields.append(b"connection: close\r\n")
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(b"".join([STATUS_LINE[status], *fields, b"\r\n", body]))
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    def _drop(self) -> None:
        """Reset the connection, so that neither this process nor its system keeps what was to be sent."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self.transport.abort()
