"""What a caller's client sends and makes of the answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dispatcher.errors import UnavailableError
from dispatcher.sdk.asgi_transport import AsgiTransport
from dispatcher.sdk.client import TRIES, CallError
from dispatcher.sdk.request_answer import RequestAnswer
from dispatcher.sdk.transport import HttpRequest, HttpResponse, HttpTransport
from tests.sdk.scripted import client_over, responding

ANSWER: RequestAnswer = {"request_id": "r1", "status": "completed", "answer": "done", "parts": []}


async def test_chat_sends_the_message_with_key_and_fresh_idempotency_key():
    client, transport = client_over(responding(ANSWER), responding(ANSWER), key="ard_k_s")

    async with client:
        answer = await client.chat("你好", user_id="u1001", wait_s=5)
        await client.chat("你好")

    first, second = transport.requests
    assert answer == ANSWER
    assert (first.method, first.path) == ("POST", "/v1/chat")
    assert json.loads(first.body) == {"message": "你好", "user_id": "u1001", "wait_s": 5}
    assert first.headers["Authorization"] == "Bearer ard_k_s"
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"]
    assert first.seconds > 5


async def test_a_lost_connection_is_tried_again_with_the_same_key():
    client, transport = client_over(UnavailableError("lost"), UnavailableError("lost"), responding(ANSWER))

    await client.chat("hello")

    assert len({request.headers["Idempotency-Key"] for request in transport.requests}) == 1
    assert len(transport.requests) == 3


async def test_a_retry_is_posted_again_under_a_key_of_its_own():
    client, transport = client_over(UnavailableError("lost"), *[responding({"request_id": "r2"})] * 2)

    assert [await client.retry("r1.0"), await client.retry("r1.0")] == ["r2", "r2"]
    lost, again, another = [request.headers["Idempotency-Key"] for request in transport.requests]
    assert lost == again != another


async def test_it_gives_up_after_some_tries():
    client, transport = client_over(*[UnavailableError("lost")] * TRIES)

    with pytest.raises(UnavailableError):
        await client.chat("hello", idempotency_key="mine")

    assert [request.headers["Idempotency-Key"] for request in transport.requests] == ["mine"] * TRIES


async def test_a_request_that_goes_on_is_open():
    client, _ = client_over(responding({"request_id": "r1", "status": "open"}, status=202))

    answer = await client.chat("hello", wait_s=0)

    assert answer == {"request_id": "r1", "status": "open", "answer": None, "parts": []}


async def test_requests_decisions_and_routes_are_read():
    client, transport = client_over(
        responding(ANSWER), responding({"decisions": [{"number": 1}]}), responding({"intents": []})
    )

    assert await client.request("r/1") == ANSWER
    assert await client.decisions("r1") == [{"number": 1}]
    assert await client.route("hello", environment="staging") == {"intents": []}
    assert [request.path for request in transport.requests] == [
        "/v1/requests/r%2F1",
        "/v1/requests/r1/decisions",
        "/v1/route",
    ]


async def test_a_problem_becomes_an_error_with_its_code():
    problem = {"code": "overloaded", "detail": "Too much work.", "status": 503}
    client, _ = client_over(responding(problem, status=503, headers={"retry-after": "2"}))

    with pytest.raises(CallError, match="Too much work") as caught:
        await client.chat("hello")

    assert (caught.value.error_code, caught.value.status, caught.value.retry_after_s) == (
        "overloaded",
        503,
        2,
    )
    assert caught.value.problem == problem


async def test_a_refused_body_says_where_and_why():
    errors = [
        {"pointer": "/message", "reason": "Must hold at least one visible character."},
        {"pointer": "", "reason": "No."},
    ]
    client, _ = client_over(responding({"detail": "The body does not fit.", "errors": errors}, status=422))

    with pytest.raises(CallError) as caught:
        await client.chat(" ")

    assert caught.value.message == (
        "The body does not fit. /message: Must hold at least one visible character. the body: No."
    )


@pytest.mark.parametrize("errors", ["no list", [1, "two"], None])
async def test_errors_in_another_form_are_left_out(errors):
    client, _ = client_over(responding({"detail": "The body does not fit.", "errors": errors}, status=422))

    with pytest.raises(CallError) as caught:
        await client.chat(" ")

    assert caught.value.message == "The body does not fit."


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
async def test_an_error_without_a_problem_still_has_its_status(body):
    client, _ = client_over(HttpResponse(status=502, headers={}, body=body))

    with pytest.raises(CallError, match="HTTP status 502") as caught:
        await client.chat("hello")

    assert caught.value.error_code == "call_refused"


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"request_id": 1, "status": "open"}'])
async def test_an_answer_that_cannot_be_read_is_none(body):
    client, _ = client_over(HttpResponse(status=200, headers={}, body=body))

    with pytest.raises(UnavailableError, match="can't be read"):
        await client.request("r1")


def streaming(*events, cut: bool = False) -> HttpResponse:
    text = "".join(f"id: {i}\nevent: {name}\ndata: {json.dumps(data)}\n\n" for i, name, data in events)
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    return HttpResponse(status=200, headers=headers, body=text.encode() + (b"id: 9\nda" if cut else b""))


ACCEPTED = ("1", "accepted", {"request_id": "r1", "status": "open"})
ANSWERED = ("3", "answer", {"request_id": "r1", "status": "completed"})


async def test_a_stream_ends_with_the_answer():
    client, transport = client_over(streaming(ACCEPTED, ("2", "partial", {"text": "one"}), ANSWERED))

    events = [event async for event in client.stream("hello", user_id="u1001")]

    (request,) = transport.requests
    assert [event["event"] for event in events] == ["accepted", "partial", "answer"]
    assert events[1] == {"id": "2", "event": "partial", "data": {"text": "one"}}
    assert (request.method, request.headers["Accept"]) == ("POST", "text/event-stream")
    assert json.loads(request.body) == {"message": "hello", "user_id": "u1001"}


async def test_a_broken_stream_is_resumed_after_the_last_event_seen():
    client, transport = client_over(
        streaming(ACCEPTED, ("2", "plan", {}), cut=True),
        UnavailableError("lost"),
        streaming(ANSWERED),
        key="k",
    )

    events = [event["event"] async for event in client.stream("hello")]

    _, _, resumed = transport.requests
    assert events == ["accepted", "plan", "answer"]
    assert (resumed.method, resumed.path) == ("GET", "/v1/requests/r1/events")
    assert (resumed.headers["Last-Event-ID"], resumed.headers["Authorization"]) == ("2", "Bearer k")


async def test_a_message_that_may_be_lost_is_posted_again_under_its_key():
    client, transport = client_over(UnavailableError("lost"), streaming(ACCEPTED, ANSWERED))

    assert len([event async for event in client.stream("hello", idempotency_key="mine")]) == 2

    assert [request.headers["Idempotency-Key"] for request in transport.requests] == ["mine", "mine"]


async def test_accepted_without_a_stream_it_is_followed():
    client, transport = client_over(
        responding({"request_id": "r1", "status": "open"}, status=202), streaming(ACCEPTED, ANSWERED)
    )

    assert [event["event"] async for event in client.stream("hello")] == ["accepted", "answer"]
    assert transport.requests[1].path == "/v1/requests/r1/events"


async def test_nothing_more_to_tell_is_the_end():
    client, _ = client_over(streaming(ACCEPTED, cut=True), HttpResponse(status=204, headers={}, body=b""))

    assert [event["event"] async for event in client.stream("hello")] == ["accepted"]


async def test_a_refused_stream_is_an_error_with_its_code():
    client, _ = client_over(responding({"code": "overloaded"}, status=503))

    with pytest.raises(CallError) as caught:
        await anext(client.stream("hello"))

    assert caught.value.error_code == "overloaded"


async def test_a_stream_that_gets_nowhere_is_given_up():
    client, transport = client_over(streaming(ACCEPTED), *[UnavailableError("lost")] * TRIES)

    with pytest.raises(UnavailableError):
        _ = [event async for event in client.stream("hello")]

    assert len(transport.requests) == TRIES


async def test_a_request_is_cancelled():
    client, transport = client_over(responding({"request_id": "r1", "status": "cancelled"}))

    answer = await client.cancel("r/1")

    (request,) = transport.requests
    assert (request.method, request.path) == ("DELETE", "/v1/requests/r%2F1")
    assert answer["status"] == "cancelled"


@pytest.fixture
async def echo() -> AsyncIterator[TestServer]:
    async def answer(request: web.Request) -> web.Response:
        if request.path == "/redirect":
            raise web.HTTPFound("/elsewhere")
        body = await request.read()
        return web.Response(body=request.path.encode() + b" " + body, headers={"X-Seen": request.method})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(application)
    await server.start_server()
    yield server
    await server.close()


async def test_http_carries_request_and_response(echo):
    async with HttpTransport(str(echo.make_url("/base/"))) as transport:
        response = await transport.send(HttpRequest(method="POST", path="/v1/chat", body=b"hello"))

    assert (response.status, response.body) == (200, b"/base/v1/chat hello")
    assert response.headers["x-seen"] == "POST"


async def test_redirects_are_not_followed(echo):
    async with HttpTransport(str(echo.make_url("/"))) as transport:
        assert (await transport.send(HttpRequest(method="GET", path="/redirect"))).status == 302


async def test_nobody_listening_is_unavailable(echo):
    url = str(echo.make_url("/"))
    await echo.close()

    async with HttpTransport(url) as transport:
        with pytest.raises(UnavailableError, match="no connection to"):
            await transport.send(HttpRequest(method="GET", path="/"))


async def test_a_client_has_to_be_entered():
    with pytest.raises(RuntimeError, match="context manager"):
        await HttpTransport("http://nowhere").send(HttpRequest(method="GET", path="/"))


async def test_an_application_of_this_process_is_called_without_a_socket():
    async def application(scope, receive, send):
        body = (await receive())["body"]
        await send(
            {"type": "http.response.start", "status": 201, "headers": [(b"X-Path", scope["raw_path"])]}
        )
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"!"})
        assert (await receive())["type"] == "http.disconnect"

    async with AsgiTransport(application) as transport:
        response = await transport.send(HttpRequest(method="POST", path="/v1/%7E?a=1", body=b"hello"))

    assert (response.status, response.body) == (201, b"hello!")
    assert response.headers == {"x-path": "/v1/%7E"}


async def test_an_applications_body_is_read_as_it_comes():
    go_on = asyncio.Event()

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"last"})

    async with AsgiTransport(application).stream(HttpRequest(method="GET", path="/")) as response:
        first = await anext(response.chunks)
        go_on.set()
        rest = [chunk async for chunk in response.chunks]

    assert (response.status, first, rest) == (200, b"first", [b"last"])


async def test_an_application_that_never_ends_is_left():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"more", "more_body": True})

    async with (
        AsgiTransport(application).stream(HttpRequest(method="GET", path="/")) as response,
        aclosing(response.chunks) as chunks,
    ):
        assert await anext(chunks) == b"more"


async def test_an_applications_error_comes_out_as_it_is():
    async def application(scope, receive, send):
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        await AsgiTransport(application).send(HttpRequest(method="GET", path="/"))


async def test_http_streams_until_the_connection_breaks_off():
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        assert request.transport is not None
        request.transport.abort()
        return response

    application = web.Application()
    application.router.add_get("/", answer)
    server = TestServer(application)
    await server.start_server()
    async with HttpTransport(str(server.make_url("/"))) as transport:
        with pytest.raises(UnavailableError):
            async with transport.stream(HttpRequest(method="GET", path="/")) as response:
                assert [chunk async for chunk in response.chunks] == [b"first"]
    await server.close()
