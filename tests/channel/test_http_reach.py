"""An endpoint is called once before it is registered; what must not be called is not even dialled."""

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from dispatcher.channel.http_call import CallRules, CallTimes, HttpCaller
from dispatcher.channel.http_policy import LOOPBACK, AddressPolicy
from dispatcher.errors import UnroutableError

LOCAL = AddressPolicy(allowed=LOOPBACK)
ELSEWHERE = "192.0.2.7"
FAST = CallRules(times=CallTimes(connect_s=0.2), reach_s=0.3)


class Names(AbstractResolver):
    """Every name leads to one address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host, host=self._address, port=port, family=socket.AF_INET, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        pass


class Sockets:
    """Opens none, and remembers for which addresses one was wanted."""

    def __init__(self) -> None:
        self.wanted: list[str] = []

    def __call__(self, info) -> socket.socket:
        self.wanted.append(str(info[4][0]))
        raise OSError("no socket in this test")


@asynccontextmanager
async def answering(*lines: bytes):
    """A server on loopback that answers every request with these lines; none: it says nothing."""
    requests: list[bytes] = []
    over = asyncio.Event()

    async def on_connection(reader, writer):
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        if lines:
            writer.write(b"\r\n".join((*lines, b"", b"")))
            await writer.drain()
        else:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], requests
    finally:
        over.set()
        server.close()
        await server.wait_closed()


async def refusal(caller: HttpCaller, endpoint: str, client: str | None = None) -> UnroutableError:
    with pytest.raises(UnroutableError) as refused:
        await caller.reach(endpoint, client)
    assert endpoint not in refused.value.message
    return refused.value


@pytest.mark.parametrize("status", [b"200 OK", b"405 Method Not Allowed", b"500 Oops"])
async def test_any_http_answer_will_do(status):
    async with answering(b"HTTP/1.1 " + status, b"Content-Length: 0") as (port, requests):
        await HttpCaller(FAST, LOCAL).reach(f"http://127.0.0.1:{port}/tasks")

    (request,) = requests
    assert request.startswith(b"GET /tasks HTTP/1.1\r\n")
    assert b"Authorization" not in request


async def test_a_redirect_is_an_answer_and_is_not_followed():
    redirect = (b"HTTP/1.1 302 Found", b"Location: http://169.254.169.254/", b"Content-Length: 0")
    sockets = Sockets()
    async with answering(*redirect) as (port, requests):
        await HttpCaller(FAST, LOCAL).reach(f"http://127.0.0.1:{port}/tasks")

    assert (len(requests), sockets.wanted) == (1, [])


async def test_an_endless_answer_is_left_alone():
    async with answering(b"HTTP/1.1 200 OK", b"Content-Length: 1000000000000") as (port, _):
        await HttpCaller(FAST, LOCAL).reach(f"http://127.0.0.1:{port}/tasks")


async def test_an_endpoint_nobody_serves_is_refused_with_the_reason():
    async with answering() as (port, _):
        pass

    refused = await refusal(HttpCaller(FAST, LOCAL), f"http://127.0.0.1:{port}/tasks")

    assert refused.error_code == "endpoint_unreachable"
    assert "nobody listens there" in refused.message


async def test_an_endpoint_that_says_nothing_is_refused_in_time():
    async with answering() as (port, _), asyncio.timeout(5):
        refused = await refusal(HttpCaller(FAST, LOCAL), f"http://127.0.0.1:{port}/tasks")

    assert (refused.error_code, "no answer came in time" in refused.message) == ("endpoint_unreachable", True)


async def test_an_endpoint_that_speaks_no_http_is_refused():
    async with answering(b"220 smtp ready") as (port, _):
        refused = await refusal(HttpCaller(FAST, LOCAL), f"http://127.0.0.1:{port}/tasks")

    assert "no HTTP answer came" in refused.message


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"])
async def test_a_name_that_leads_to_a_forbidden_address_is_refused_and_not_dialled(address):
    sockets = Sockets()
    caller = HttpCaller(FAST, AddressPolicy(), resolver=Names(address), open_socket=sockets)

    refused = await refusal(caller, "http://agent.example/tasks")

    assert (refused.error_code, sockets.wanted) == ("endpoint_refused", [])


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9", "127.8.8.8:9", "[::1]:9", "localhost:9", "[::ffff:127.0.0.1]:9"]
)
def test_loopback_registered_from_another_host_is_refused_whatever_is_allowed(host):
    endpoint = f"http://{host}/tasks"

    assert LOCAL.endpoint_flaw(endpoint) is None
    flaw = LOCAL.endpoint_flaw(endpoint, ELSEWHERE)

    assert flaw == f"leads to the dispatcher's own host, and the registration came from {ELSEWHERE}"


async def test_a_name_that_leads_to_loopback_is_refused_and_not_dialled_for_another_host():
    sockets = Sockets()
    caller = HttpCaller(FAST, LOCAL, resolver=Names("127.0.0.1"), open_socket=sockets)

    refused = await refusal(caller, "http://agent.example/tasks", ELSEWHERE)
    await refusal(caller, "http://agent.example/tasks")

    assert refused.error_code == "endpoint_refused"
    assert f"the registration came from {ELSEWHERE}" in refused.message
    assert sockets.wanted == ["127.0.0.1"]


def test_another_address_does_not_depend_on_who_registers_it():
    policy = replace(LOCAL, allowed=())

    for address in ("8.8.8.8", "10.0.0.1"):
        assert policy.address_flaw(address, ELSEWHERE) == policy.address_flaw(address)
