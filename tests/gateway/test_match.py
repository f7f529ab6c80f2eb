"""How a caller may say which capability it wants."""

import pytest

from dispatcher.dispatch.lifecycle.request import Match

HELLO = {"message": "where is my order"}


def submitted(api, **fields):
    response = api.post("/v1/chat", {**HELLO, **fields})
    assert response.status_code == 200, response.text
    return api.dispatcher.submitted[-1]


@pytest.mark.parametrize("fields", [{}, {"match": "strict"}])
def test_a_name_is_taken_strictly_by_default(api, fields):
    message = submitted(api, capability="order.query", **fields)

    assert (message.capability, message.match, message.wanted) == ("order.query", Match.STRICT, None)


@pytest.mark.parametrize("match", [Match.LOOSE, Match.SEMANTIC])
def test_an_alias_or_a_description_is_free_text(api, match):
    message = submitted(api, capability="查订单的状态", match=match)

    assert (message.capability, message.match, message.wanted) == (None, match, "查订单的状态")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"match": "loose"}, "/match"),
        ({"match": "fuzzy", "capability": "order.query"}, "/match"),
        ({"match": 1, "capability": "order.query"}, "/match"),
        ({"capability": "查订单"}, "/capability"),
        ({"capability": "查订单", "match": "strict"}, "/capability"),
        ({"capability": " ", "match": "semantic"}, "/capability"),
        ({"capability": "x" * 1001, "match": "semantic"}, "/capability"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat", "/v1/route"])
def test_what_makes_no_sense_is_refused_by_its_place(api, path, fields, pointer):
    response = api.post(path, {**HELLO, **fields})

    assert response.status_code == 422
    assert pointer in [error["pointer"] for error in response.json()["errors"]]
