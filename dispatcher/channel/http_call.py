"""One call of an agent's endpoint; the only file of the channel that knows the HTTP library."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver

from dispatcher.channel.http_policy import AddressPolicy
from dispatcher.channel.http_reply import Broken, Reply
from dispatcher.errors import UnroutableError
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.topology import MAX_FRAME_BYTES

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]
OpenSocket = Callable[[AddressInfo], socket.socket]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """Limits of one call, in seconds and bytes.

    `connect_s` is for everything until the connection stands, name and TLS included; `read_s` for
    silence of the agent; `total_s` for the whole call. An idle connection is kept for
    `keep_alive_s`: less than what servers keep, so that they rarely close it under a new call.
    """

    connect_s: float = 3.0
    read_s: float = 15.0
    total_s: float = 30.0
    keep_alive_s: float = 1.0
    max_body_bytes: int = MAX_FRAME_BYTES


class AddressRefusedError(OSError):
    """The policy forbids an address; to the HTTP library, an address that can't be reached."""


class HttpCaller:
    """Connections to agents, every one of them to an address that the policy allowed at its dial."""

    def __init__(
        self,
        rules: CallRules,
        policy: AddressPolicy,
        *,
        resolver: AbstractResolver | None = None,
        open_socket: OpenSocket | None = None,
    ) -> None:
        self._rules = rules
        self.policy = policy
        self._resolver = resolver
        self._open_socket = open_socket or _open_socket
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Calls work inside the block; leaving it closes all connections."""
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=self._rules.keep_alive_s,
            resolver=self._resolver or aiohttp.ThreadedResolver(),
            socket_factory=self._checked_socket,
        )
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_tell_handed_over)
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[tracing],
            auto_decompress=False,
            trust_env=False,
        ) as session:
            self._session = session
            yield
        self._session = None

    async def call(
        self, endpoint: str, task: TaskFrame, body: bytes, handed_over: Callable[[], None]
    ) -> Reply | Broken:
        """Post the encoded task and read the reply.

        `handed_over` is called once, when the connection stands and the request goes out. Raises
        `UnroutableError` where it did not come to that: the task surely did not start.
        """
        begun = _Begun(handed_over)
        total_s = min(self._rules.total_s, task.budget_ms / 1000)
        try:
            async with asyncio.timeout(total_s):
                return await self._exchange(endpoint, task, body, begun)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if not begun.is_so:
                raise _unroutable(task, error) from error
            return Broken(code="http_timeout" if isinstance(error, TimeoutError) else "http_cut")

    async def _exchange(self, endpoint: str, task: TaskFrame, body: bytes, begun: "_Begun") -> Reply | Broken:
        if self._session is None:
            raise OSError("the channel is closed")
        async with self._session.post(
            endpoint,
            data=body,
            headers=_headers(task),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=self._rules.connect_s, sock_read=self._rules.read_s
            ),
            trace_request_ctx=begun,
        ) as response:
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> Reply | Broken:
        """The reply; the body of anything but a 200 is left alone, and so is a compressed one."""
        if response.status != 200:
            return Reply(status=response.status, retry_after=response.headers.get("Retry-After"))
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            return Broken(code="http_unreadable")
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._rules.max_body_bytes:
                return Broken(code="http_too_large", can_retry=False)
        return Reply(status=200, body=bytes(body))

    def _checked_socket(self, info: AddressInfo) -> socket.socket:
        """Every dial passes here, with the address that it really goes to."""
        if flaw := self.policy.address_flaw(str(info[4][0])):
            raise AddressRefusedError(f"the endpoint {flaw}")
        return self._open_socket(info)


class _Begun:
    """Whether the request of a call went out."""

    __slots__ = ("_tell", "is_so")

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.is_so = False

    def happened(self) -> None:
        self.is_so = True
        self._tell()


async def _tell_handed_over(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    context.trace_request_ctx.happened()


def _open_socket(info: AddressInfo) -> socket.socket:
    return socket.socket(info[0], info[1], info[2])


def _headers(task: TaskFrame) -> dict[str, str]:
    """Copies of what the frame says, for proxies and logs; a value that fits no header stays in the frame.

    Without `Accept-Encoding: identity` every coding would be acceptable (RFC 9110, 12.5.3).
    """
    wanted = {
        "Idempotency-Key": task.idempotency_key,
        "X-Request-Id": task.request_id,
        "Traceparent": task.traceparent or "",
    }
    sendable = {name: text for name, text in wanted.items() if text and text.isascii() and text.isprintable()}
    return {"Content-Type": "application/json", "Accept-Encoding": "identity", **sendable}


def _unroutable(task: TaskFrame, error: Exception) -> UnroutableError:
    refused = isinstance(getattr(error, "os_error", error), AddressRefusedError)
    return UnroutableError(
        f"agent {task.agent_id} could not be called: {error if refused else type(error).__name__}",
        code="endpoint_refused" if refused else None,
    )
