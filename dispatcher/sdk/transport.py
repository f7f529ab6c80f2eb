"""How a caller's requests reach the gateway."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import aiohttp

from dispatcher.errors import UnavailableError

MAX_RESPONSE_BYTES = 16 * 1024 * 1024


class NotReachedError(UnavailableError):
    """No connection came about, so that nothing was sent: what was asked for is surely not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request; `seconds` is the time for all of it."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """Status, headers by lower-case name, whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedResponse:
    """Status, headers by lower-case name, and the body as it comes.

    Reading it raises `UnavailableError` when it breaks off.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes]


class Transport(Protocol):
    """Carries requests; an async context manager that holds the connections."""

    async def __aenter__(self) -> Self:
        """Open."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The response, whatever its status.

        Raises `UnavailableError` when none came, `NotReachedError` where the request surely was not sent.
        """
        ...

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        """The response with its body as it comes; it breaks off after `request.seconds` of silence.

        Raises `UnavailableError` when none came.
        """
        ...


class HttpTransport(Transport):
    """Over the network with aiohttp: connections are kept, redirects are not followed.

    `read_s` limits every silence of a response, `max_bytes` its size.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_s: float = 3.0,
        read_s: float | None = None,
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self._url = url.rstrip("/")
        self._connect_s = connect_s
        self._read_s = read_s
        self._max_bytes = max_bytes
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = self._open()
        return self

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """One exchange; a response over `max_bytes` counts as none."""
        timeout = aiohttp.ClientTimeout(
            total=request.seconds, connect=self._connect_s, sock_read=self._read_s
        )
        async with self._translated(), self._exchange(request, timeout) as response:
            body = await _read(response.content, self._max_bytes)
            return HttpResponse(status=response.status, headers=_headers(response), body=body)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[StreamedResponse]:
        """One exchange; the time for all of it is not limited, only every silence."""
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._connect_s, sock_connect=self._connect_s, sock_read=request.seconds
        )
        async with self._translated(), self._exchange(request, timeout) as response:
            yield StreamedResponse(
                status=response.status, headers=_headers(response), chunks=self._chunks(response.content)
            )

    async def _chunks(self, content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
        async with self._translated():
            async for chunk in content.iter_any():
                yield chunk

    def _exchange(
        self, request: HttpRequest, timeout: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("use the client as an async context manager")
        return self._session.request(
            request.method,
            self._address(request),
            data=request.body or None,
            headers=request.headers,
            timeout=timeout,
            allow_redirects=False,
        )

    def _address(self, request: HttpRequest) -> str:
        return self._url + request.path

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotReachedError(f"no connection to {self._url}: {type(error).__name__}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"no response from {self._url}: {type(error).__name__}") from error


class EndpointTransport(HttpTransport):
    """To any number of agents: the path of a request is its whole URL, used exactly as it is given.

    Keeps no cookies and asks for no compression.
    """

    def __init__(self, *, connect_s: float, read_s: float, max_bytes: int) -> None:
        super().__init__("the agent", connect_s=connect_s, read_s=read_s, max_bytes=max_bytes)

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), headers={"Accept-Encoding": "identity"}
        )

    def _address(self, request: HttpRequest) -> str:
        return request.path


def _headers(response: aiohttp.ClientResponse) -> Mapping[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


async def _read(stream: aiohttp.StreamReader, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in stream.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise aiohttp.ClientPayloadError("the response is too large")
    return bytes(body)
