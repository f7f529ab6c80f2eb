"""One call of an agent's endpoint; the only file of the channel that knows the HTTP library."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver

from dispatcher.channel.http_policy import AddressPolicy
from dispatcher.channel.http_reply import BUDGET_OVER, CUT, SILENT, TOO_SLOW, Broken, Reply
from dispatcher.channel.http_request import cancel_headers, cancel_url, task_headers
from dispatcher.errors import UnroutableError
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.topology import MAX_FRAME_BYTES

AddressInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]
OpenSocket = Callable[[AddressInfo], socket.socket]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """Limits of one call in seconds (requirement D3).

    `connect_s` is for everything until the connection stands, name and TLS included; `read_s` for
    silence of the agent; `total_s` for the whole call.
    """

    connect_s: float = 3.0
    read_s: float = 15.0
    total_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """How agents are called: `times`, or those in `times_of` for a capability that has its own.

    `credentials` are sent as bearer tokens to these agents. An idle connection is kept for
    `keep_alive_s` seconds: less than what servers keep, so that they rarely close it under a new
    call. An endpoint that is being registered has `reach_s` to answer, once it is connected. Of a
    body at most `max_body_bytes` are read.
    """

    times: CallTimes = field(default_factory=CallTimes)
    times_of: Mapping[str, CallTimes] = field(default_factory=dict)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    keep_alive_s: float = 1.0
    reach_s: float = 2.0
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
        connector = self._connector(client=None)
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
        times = self._rules.times_of.get(task.capability, self._rules.times)
        budget_s = task.budget_ms / 1000
        limit = asyncio.timeout(min(times.total_s, budget_s))
        try:
            async with limit:
                return await self._exchange(endpoint, task, body, begun, times)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            if not begun.is_so:
                raise _unroutable(task.agent_id, error) from error
            if limit.expired():
                return BUDGET_OVER if budget_s < times.total_s else TOO_SLOW
            return SILENT if isinstance(error, TimeoutError) else CUT

    async def _exchange(
        self, endpoint: str, task: TaskFrame, body: bytes, begun: "_Begun", times: CallTimes
    ) -> Reply | Broken:
        async with self._connected().post(
            endpoint,
            data=body,
            headers=task_headers(task, self._rules.credentials.get(task.agent_id)),
            allow_redirects=False,
            timeout=_limits(times),
            trace_request_ctx=begun,
        ) as response:
            return await self._read(response)

    async def cancel(self, endpoint: str, frame: CancelFrame) -> int:
        """Ask the agent to stop a task, at `cancel_url`; the status of its answer.

        Like a call, within the times that are not a capability's own. Raises `UnroutableError` where
        no answer came: whether the agent was told then, nobody knows.
        """
        credential = self._rules.credentials.get(frame.agent_id)
        times = self._rules.times
        try:
            async with (
                asyncio.timeout(times.total_s),
                self._connected().delete(
                    cancel_url(endpoint, frame.task_id),
                    headers=cancel_headers(frame, credential),
                    allow_redirects=False,
                    timeout=_limits(times),
                    trace_request_ctx=_Begun(_tell_nobody),
                ) as response,
            ):
                return response.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _unroutable(frame.agent_id, error) from error

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise OSError("the channel is closed")
        return self._session

    async def _read(self, response: aiohttp.ClientResponse) -> Reply | Broken:
        """The reply; the body of anything but a 200 is left alone, and so is a compressed one."""
        retry_after = response.headers.get("Retry-After")
        if response.status != 200:
            return Reply(status=response.status, retry_after=retry_after)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            return Broken(code="http_unreadable")
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._rules.max_body_bytes:
                return Broken(code="http_too_large", can_retry=False)
        return Reply(status=200, body=bytes(body), retry_after=retry_after)

    async def reach(self, endpoint: str, client: str | None = None) -> None:
        """Ask the endpoint for anything, as an agent registers it; any HTTP answer will do.

        `client` is as in `AddressPolicy.address_flaw`. The connection is a new one and is closed
        again; the answer's body is not read. Raises `UnroutableError`, `endpoint_refused` or
        `endpoint_unreachable`, with the reason.
        """
        times = self._rules.times
        limits = aiohttp.ClientTimeout(total=times.connect_s + self._rules.reach_s, connect=times.connect_s)
        connector = self._connector(client)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, trust_env=False, timeout=limits) as session,
                session.get(endpoint, allow_redirects=False, headers={"Accept-Encoding": "identity"}),
            ):
                return
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _unreachable(error) from error

    def _connector(self, client: str | None) -> aiohttp.TCPConnector:
        """Every dial passes its address through the policy: the one that it really goes to."""

        def checked_socket(info: AddressInfo) -> socket.socket:
            if flaw := self.policy.address_flaw(str(info[4][0]), client):
                raise AddressRefusedError(f"the endpoint {flaw}")
            return self._open_socket(info)

        return aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=self._rules.keep_alive_s,
            resolver=self._resolver or aiohttp.ThreadedResolver(),
            socket_factory=checked_socket,
        )


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


def _tell_nobody() -> None:
    """For requests whose sender waits for their end."""


def _limits(times: CallTimes) -> aiohttp.ClientTimeout:
    """The library's part of them; the total is ours."""
    return aiohttp.ClientTimeout(total=None, connect=times.connect_s, sock_read=times.read_s)


def _is_refused(error: Exception) -> bool:
    return isinstance(getattr(error, "os_error", error), AddressRefusedError)


def _unroutable(agent_id: str, error: Exception) -> UnroutableError:
    refused = _is_refused(error)
    return UnroutableError(
        f"agent {agent_id} could not be called: {error if refused else type(error).__name__}",
        code="endpoint_refused" if refused else None,
    )


def _unreachable(error: Exception) -> UnroutableError:
    """The sentence for whoever registers the endpoint; it never quotes the endpoint."""
    if _is_refused(error):
        return UnroutableError(str(getattr(error, "os_error", error)), code="endpoint_refused")
    match error:
        case aiohttp.ClientConnectorDNSError():
            reason = "its name leads nowhere"
        case aiohttp.ClientSSLError():
            reason = "no TLS connection could be made"
        case aiohttp.ClientConnectorError():
            reason = "nobody listens there"
        case TimeoutError():
            reason = "no answer came in time"
        case _:
            reason = f"no HTTP answer came ({type(error).__name__})"
    return UnroutableError(
        f"the endpoint can't be called from here: {reason}; serve it before you register",
        code="endpoint_unreachable",
    )
