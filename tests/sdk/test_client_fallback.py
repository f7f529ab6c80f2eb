"""When a client may believe that no gateway has its message, and how it then calls an agent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dispatcher.errors import UnavailableError
from dispatcher.sdk.client import TRIES, Client
from dispatcher.sdk.transport import (
    EndpointTransport,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    NotReachedError,
    Transport,
)

NOT_REACHED, LOST = NotReachedError("refused"), UnavailableError("lost")


class Scripted(Transport):
    """Answers from a script; an exception in it is raised."""

    def __init__(self, *script: HttpResponse | Exception) -> None:
        self.script = list(script)

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        pass

    async def send(self, request):
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def stream(self, request):
        raise NotImplementedError


class Hurried:
    """A clock on which every sleep is over at once."""

    def monotonic(self):
        return 0.0

    async def sleep(self, seconds):
        pass


@pytest.mark.parametrize(
    ("script", "is_sure"),
    [
        ([NOT_REACHED] * TRIES, True),
        ([LOST, NOT_REACHED, NOT_REACHED], False),
        ([NOT_REACHED, LOST, NOT_REACHED], False),
        ([NOT_REACHED, NOT_REACHED, LOST], False),
    ],
)
async def test_one_try_that_may_have_got_through_is_enough_to_be_unsure(script, is_sure):
    client = Client("http://nowhere", transport=Scripted(*script), clock=Hurried())

    with pytest.raises(UnavailableError) as failure:
        await client.chat("hello")

    assert isinstance(failure.value, NotReachedError) == is_sure


async def test_a_gateway_that_is_back_is_asked():
    body = b'{"request_id": "r1", "status": "completed", "answer": "done", "parts": []}'
    responding = HttpResponse(status=200, headers={}, body=body)
    client = Client("http://nowhere", transport=Scripted(NOT_REACHED, responding), clock=Hurried())

    assert (await client.chat("hello"))["answer"] == "done"


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    await server.start_server()
    try:
        yield server
    finally:
        await server.close()


async def echo(request: web.Request) -> web.Response:
    if request.path == "/redirect":
        raise web.HTTPFound("/elsewhere")
    headers = {"Set-Cookie": "a=b", "X-Seen": request.headers.get("Cookie", "none")}
    return web.Response(text=f"{request.path_qs} {request.headers['Accept-Encoding']}", headers=headers)


def to_agents(**limits) -> EndpointTransport:
    return EndpointTransport(**{"connect_s": 1.0, "read_s": 1.0, "max_bytes": 1000, **limits})


async def test_nobody_listening_is_surely_not_reached():
    async with serving(echo) as server:
        url = str(server.make_url("/tasks"))

    async with HttpTransport(url) as to_gateway, to_agents() as agents:
        with pytest.raises(NotReachedError):
            await to_gateway.send(HttpRequest(method="POST", path="/v1/chat"))
        with pytest.raises(NotReachedError):
            await agents.send(HttpRequest(method="POST", path=url))


async def test_a_name_that_leads_nowhere_is_surely_not_reached():
    async with HttpTransport("http://no-such-host.invalid") as transport:
        with pytest.raises(NotReachedError):
            await transport.send(HttpRequest(method="POST", path="/v1/chat"))


async def test_a_connection_that_breaks_off_may_have_been_enough():
    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serving(hang_up) as server, HttpTransport(str(server.make_url("/"))) as transport:
        with pytest.raises(UnavailableError) as failure:
            await transport.send(HttpRequest(method="POST", path="/"))

    assert not isinstance(failure.value, NotReachedError)


async def test_an_endpoint_is_called_exactly_as_given():
    async with serving(echo) as server, to_agents() as agents:
        response = await agents.send(HttpRequest(method="POST", path=str(server.make_url("/a/?b=c"))))
        again = await agents.send(HttpRequest(method="POST", path=str(server.make_url("/a/"))))

    assert response.body == b"/a/?b=c identity"
    assert again.headers["x-seen"] == "none"


async def test_an_agents_redirect_is_not_followed():
    async with serving(echo) as server, to_agents() as agents:
        response = await agents.send(HttpRequest(method="POST", path=str(server.make_url("/redirect"))))

    assert response.status == 302


async def test_an_agents_endless_answer_is_cut_off():
    async def endless(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1001)

    async with serving(endless) as server, to_agents() as agents:
        with pytest.raises(UnavailableError) as failure:
            await agents.send(HttpRequest(method="POST", path=str(server.make_url("/"))))

    assert not isinstance(failure.value, NotReachedError)


@pytest.mark.parametrize(("read_s", "seconds"), [(0.05, 5.0), (5.0, 0.05)])
async def test_a_silent_agent_is_given_up_and_may_have_run(read_s, seconds):
    over = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    async with serving(silent) as server, to_agents(read_s=read_s) as agents:
        with pytest.raises(UnavailableError) as failure:
            await agents.send(HttpRequest(method="POST", path=str(server.make_url("/")), seconds=seconds))
        over.set()

    assert not isinstance(failure.value, NotReachedError)
