import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.bad_inputs import BAD_INPUTS, MARK
from tests.gateway.stubs import ADMIN, Api

PATHS = ["/v1/chat", "/v1/route", "/v1/agents", "/v1/agents/try", "/v1/agents/order/heartbeat"]


@pytest.fixture(scope="module")
def shared_api():
    """One application for all examples of a property."""
    return Api()


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda b: b.name)
def test_a_bad_body_is_refused_and_not_repeated(api, bad):
    headers = {"Content-Encoding": bad.encoding} if bad.encoding else {}
    if bad.content_type is not None:
        headers["Content-Type"] = bad.content_type

    response = api.call("POST", "/v1/chat", content=bad.raw, headers=headers)

    assert (response.status_code, response.json()["code"]) == (bad.status, bad.code)
    assert MARK not in response.text
    assert len(response.content) < 2_000
    assert api.dispatcher.submitted == []


def test_a_large_body_without_a_length_is_refused_while_it_comes(api):
    sent = []

    def chunks():
        for _ in range(1_000):
            sent.append(1)
            yield b"x" * 1_024

    response = api.send(chunks())

    assert response.status_code == 413


def test_a_body_of_exactly_the_limit_is_taken(api):
    frame = len(b'{"message":""}')

    response = api.send(b'{"message":"' + b"x" * (65_536 - frame) + b'"}')

    assert response.status_code == 200


def test_each_error_is_named_by_its_place(api):
    response = api.post("/v1/chat", {"message": " ", "wait_s": -1, "context": {"x": 1}, MARK: 1})

    assert sorted(e["pointer"] for e in response.json()["errors"]) == ["/*", "/message", "/wait_s"]


def test_a_mistyped_field_is_answered_with_the_nearest_known_one(api):
    response = api.post("/v1/chat", {"message": "hi", "sesion_id": "s1"})

    assert response.json()["errors"] == [
        {"pointer": "/*", "reason": "This field is not known here; did you mean `session_id`?"}
    ]


def test_not_every_error_of_a_thousand_is_listed(api):
    response = api.post("/v1/chat", {"message": "hi", **{f"{MARK}{i}": i for i in range(1_000)}})

    assert len(response.json()["errors"]) == 20
    assert MARK not in response.text


def test_names_in_open_maps_are_not_repeated(api):
    body = {"instance_id": "i", "lease_id": "l", "running": 0, "capabilities": {MARK: {"requests": -1}}}

    response = api.post("/v1/agents/order/heartbeat", body, key=ADMIN)

    assert [e["pointer"] for e in response.json()["errors"]] == ["/capabilities/*/requests"]


NAMES = st.sampled_from(["message", "context", "wait_s", "texts", "declaration", "capabilities", MARK])
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.just(MARK) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PATHS), JSON_LIKE)
def test_no_body_makes_an_error_of_ours_or_is_repeated(shared_api, path, body):
    response = shared_api.send(json.dumps(body).encode(), path=path, key=ADMIN)

    assert response.status_code < 500
    assert response.status_code < 400 or MARK not in response.text
