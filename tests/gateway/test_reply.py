import logging
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.clock import SystemClock
from dispatcher.errors import RequestError
from dispatcher.gateway.edge import Edge
from dispatcher.gateway.problem import answer_dispatcher_error
from dispatcher.gateway.reply import encode, json_response
from dispatcher.gateway.whole import ANSWER, STATUS


class Colour(StrEnum):
    RED = "red"


def test_the_dispatchers_own_values_become_json():
    content = {"set": frozenset({2, 1}), "map": MappingProxyType({"a": Colour.RED}), "nan": float("nan")}

    assert encode(content) == b'{"set":[1,2],"map":{"a":"red"},"nan":null}'


def test_a_value_of_another_kind_is_an_error():
    with pytest.raises(TypeError):
        encode(object())


async def test_heads_are_those_that_the_framework_would_make():
    fields = {"Location": "/v1/requests/1"}
    made = json_response({"a": 1}, status=202, headers=fields)
    other = Response(b'{"a":1}', 202, fields, media_type="application/json")
    problem = await answer_dispatcher_error(
        Request({"type": "http"}), RequestError("no", code="unauthenticated")
    )
    like = Response(
        problem.body,
        401,
        {"WWW-Authenticate": 'Bearer realm="dispatcher"'},
        media_type="application/problem+json",
    )

    assert (made.status_code, made.body, made.raw_headers) == (202, other.body, other.raw_headers)
    assert (problem.status_code, problem.raw_headers) == (401, like.raw_headers)


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_document_goes_out_at_once_or_in_messages_and_its_status_is_logged(caplog, is_taken):
    caplog.set_level(logging.INFO)
    taken, sent = [], []

    def answer(*said):
        taken.append(said)
        return is_taken

    async def send(message):
        sent.append(message["type"])

    async def receive():
        raise AssertionError("nothing more is asked of the client")

    response = json_response({"a": 1}, status=202)
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "extensions": {ANSWER: {"answer": answer}},
    }
    await Edge(response, SystemClock())(scope, receive, send)

    assert taken == [(scope, 202, response.raw_headers, b'{"a":1}')]
    assert sent == ([] if is_taken else ["http.response.start", "http.response.body"])
    assert scope[STATUS] == 202
    assert [record.__dict__["status"] for record in caplog.records] == [202]
