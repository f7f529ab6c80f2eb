"""Server-sent events over ASGI: what a stream looks like on the wire, and when one is given up."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.gateway.headers import EVENTS
from dispatcher.gateway.problem import answer_dispatcher_error

ABORT = "dispatcher.abort"
"""ASGI extension: `scope["extensions"][ABORT]["abort"]()` drops the connection with all it has to send."""
KEEP_ALIVE = b": keep-alive\n\n"
_HEADERS = {
    "Content-Type": EVENTS,
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An opened stream: what to send chunk by chunk, and the response's own headers.

    `otherwise` is answered where a part that the first chunk needs is not available.
    """

    chunks: AsyncIterator[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    otherwise: Response | None = None


def encode_event(name: str, event_id: str, data: bytes) -> bytes:
    """One event; `data` is JSON without line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event_id.encode(), name.encode(), data)


class EventStream(Response):
    """Sends each chunk before it asks for the next, so that nothing piles up here.

    What opening and the first chunk raise is answered like any other error. Without any chunk the
    answer is 204, which ends the reconnecting of an EventSource. A client that makes no room for a
    chunk within `stall_s` seconds is cut off; one that leaves ends the stream at once.
    """

    def __init__(self, opened: Callable[[], AbstractAsyncContextManager[Stream]], stall_s: float) -> None:
        super().__init__()
        self._opened = opened
        self._stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the stream and send it, or answer why not: its errors come outside of every handler."""
        try:
            await self._answer(scope, receive, send)
        except DispatcherError as error:
            response = await answer_dispatcher_error(Request(scope), error)
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened() as stream:
            first = await _first(stream)
            if isinstance(first, Response):
                await first(scope, receive, send)
                return
            headers = MutableHeaders(headers={**_HEADERS, **stream.headers})
            start = {"type": "http.response.start", "status": 200, "headers": headers.raw}
            client = _Client(scope, receive, send)
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send_all(start, _chain(first, stream.chunks), client))
                leaving = group.create_task(client.has_left())
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
                sending.cancel()
                leaving.cancel()

    async def _send_all(self, start: Message, chunks: AsyncIterator[bytes], client: "_Client") -> None:
        try:
            await self._send(client, start)
            async for chunk in chunks:
                await self._send(client, {"type": "http.response.body", "body": chunk, "more_body": True})
            await self._send(client, {"type": "http.response.body", "body": b"", "more_body": False})
        except _StalledError:
            _log.info("stream.stalled", extra={"stall_s": self._stall_s})
            await client.drop()

    async def _send(self, client: "_Client", message: Message) -> None:
        try:
            async with asyncio.timeout(self._stall_s):
                await client.send(message)
        except TimeoutError:
            raise _StalledError from None


async def _first(stream: Stream) -> bytes | Response:
    try:
        return await anext(stream.chunks)
    except StopAsyncIteration:
        return Response(status_code=204)
    except UnavailableError:
        if stream.otherwise is None:
            raise
        return stream.otherwise


async def _chain(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in others:
        yield chunk


class _StalledError(Exception):
    """The client takes nothing."""


class _Client:
    """The other end of one connection."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self.send = send

    async def has_left(self) -> None:
        """Return once the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drop(self) -> None:
        """End the connection, whatever is still to be sent over it."""
        abort = self._scope.get("extensions", {}).get(ABORT, {}).get("abort")
        if abort is not None:
            abort()
            await self.has_left()
