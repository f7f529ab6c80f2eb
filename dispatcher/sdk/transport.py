"""How a caller's requests reach the gateway."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import aiohttp

from dispatcher.errors import UnavailableError

MAX_RESPONSE_BYTES = 16 * 1024 * 1024


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
        """The response, whatever its status; raises `UnavailableError` when none came."""
        ...


class HttpTransport(Transport):
    """Over the network with aiohttp: connections are kept, redirects are not followed."""

    def __init__(self, url: str, *, connect_s: float = 3.0) -> None:
        self._url = url.rstrip("/")
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """One exchange; a response over `MAX_RESPONSE_BYTES` counts as none."""
        if self._session is None:
            raise RuntimeError("use the client as an async context manager")
        timeout = aiohttp.ClientTimeout(total=request.seconds, connect=self._connect_s)
        url = self._url + request.path
        try:
            async with self._session.request(
                request.method,
                url,
                data=request.body or None,
                headers=request.headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                body = await _read(response.content)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return HttpResponse(status=response.status, headers=headers, body=body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"no response from {self._url}: {type(error).__name__}") from error


async def _read(stream: aiohttp.StreamReader) -> bytes:
    body = bytearray()
    async for chunk in stream.iter_any():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise aiohttp.ClientPayloadError("the response is too large")
    return bytes(body)
