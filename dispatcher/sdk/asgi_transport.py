"""Calls an ASGI application without a socket."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dispatcher.errors import UnavailableError, first_error
from dispatcher.sdk.transport import HttpRequest, HttpResponse, StreamedResponse, Transport

MAX_CHUNKS = 16
"""Pieces of a body that wait for the reader; beyond, the application waits."""
Message = MutableMapping[str, Any]
Application = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class AsgiTransport(Transport):
    """A client's transport straight into an application of this process; nothing to open or close."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def send(self, request: HttpRequest) -> HttpResponse:
        """One exchange within `request.seconds`."""
        try:
            async with asyncio.timeout(request.seconds), self._exchange(request) as exchange:
                body = b"".join([chunk async for chunk in exchange.chunks()])
        except TimeoutError as error:
            raise UnavailableError("no response in time") from error
        return HttpResponse(status=exchange.status, headers=exchange.headers, body=body)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[StreamedResponse]:
        """One exchange; `request.seconds` is not looked at, as no connection can fall silent."""
        async with self._exchange(request) as exchange:
            await exchange.begun()
            yield StreamedResponse(status=exchange.status, headers=exchange.headers, chunks=exchange.chunks())

    @asynccontextmanager
    async def _exchange(self, request: HttpRequest) -> AsyncIterator["_Exchange"]:
        """The application at work on the request until the block ends."""
        exchange = _Exchange(request)
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(exchange.run(self._application))
                try:
                    yield exchange
                finally:
                    exchange.leave()
                    if not exchange.has_ended:
                        running.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors


class _Exchange:
    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._is_sent = False
        self._has_left = asyncio.Event()
        self._begun = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_CHUNKS)
        self.has_ended = False
        self.status = 0
        self.headers: dict[str, str] = {}

    async def run(self, application: Application) -> None:
        """Let the application answer; the end of the chunks is the end of its answer."""
        try:
            await application(self.scope(), self.receive, self.send)
        finally:
            self._begun.set()
            if not self.has_ended:
                self._cut()

    def leave(self) -> None:
        """Tell the application that nobody listens any more."""
        self._has_left.set()

    async def begun(self) -> None:
        """Return once status and headers are there."""
        await self._begun.wait()

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it comes."""
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    def scope(self) -> dict[str, Any]:
        parts = urlsplit(self._request.path)
        headers = {
            "host": "in-process",
            "content-length": str(len(self._request.body)),
            **self._request.headers,
        }
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": "http",
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }

    async def receive(self) -> Message:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            self._begun.set()
            return
        if body := message.get("body", b""):
            await self._chunks.put(body)
        if not message.get("more_body", False):
            await self._end()

    def _cut(self) -> None:
        """The application left in the middle of its answer, which ends here."""
        self.has_ended = True
        if self._chunks.full():
            self._chunks.get_nowait()
        self._chunks.put_nowait(None)

    async def _end(self) -> None:
        self.has_ended = True
        await self._chunks.put(None)
