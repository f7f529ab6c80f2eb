"""Calls an ASGI application without a socket."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dispatcher.errors import UnavailableError
from dispatcher.sdk.transport import HttpRequest, HttpResponse, Transport

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
        exchange = _Exchange(request)
        try:
            async with asyncio.timeout(request.seconds):
                await self._application(exchange.scope(), exchange.receive, exchange.send)
        except TimeoutError as error:
            raise UnavailableError("no response in time") from error
        return exchange.response()


class _Exchange:
    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._is_sent = False
        self._ended = asyncio.Event()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()

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
        await self._ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            return
        self._body += message.get("body", b"")
        if not message.get("more_body", False):
            self._ended.set()

    def response(self) -> HttpResponse:
        return HttpResponse(status=self._status, headers=self._headers, body=bytes(self._body))
