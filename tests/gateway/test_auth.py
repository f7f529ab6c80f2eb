import re

import pytest
from fastapi.routing import iter_route_contexts

from dispatcher.errors import UnavailableError
from dispatcher.registry.access import Identity, Role
from tests.gateway.stubs import ALICE, ORDER_AGENT

OPEN = {
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/swagger-ui-bundle.js",
    "/docs/swagger-ui.css",
    "/docs/favicon.png",
}


def routes(app):
    """Every method and path that the application answers, whatever kind of route it is."""
    for route in iter_route_contexts(app.routes):
        for method in sorted(route.methods or {"GET"} - {"HEAD"}):
            yield method, route.path


def test_every_route_but_the_open_ones_asks_for_a_key(api):
    walked = set()
    for method, path in routes(api.app):
        filled = re.sub(r"\{\w+\}", "x", path)
        response = api.client.request(method, filled)
        walked.add(path)
        assert (response.status_code == 401) is (path not in OPEN), (method, path, response.status_code)

    assert walked >= OPEN | {"/v1/chat", "/v1/route", "/v1/agents", "/v1/agents/{agent_id}/heartbeat"}


def test_the_open_routes_all_exist(api):
    assert {path for _, path in routes(api.app)} >= OPEN


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer ard_unknown",
        "Basic ard_alice",
        "ard_alice",
        "Bearer ard_alice extra",
        b"Bearer \xff\xfe",
        "Bearer " + "a" * 20_000,
    ],
)
def test_every_wrong_key_gets_the_same_answer(api, authorization):
    headers = {} if authorization is None else {"Authorization": authorization}

    response = api.post("/v1/chat", {"message": "hi"}, key=None, headers=headers)

    assert response.status_code == 401
    assert response.json() == api.post("/v1/chat", {"message": "hi"}, key="ard_other").json()
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_scheme_is_read_in_any_case(api):
    response = api.post(
        "/v1/chat", {"message": "hi"}, key=None, headers={"Authorization": "bearer ard_alice"}
    )

    assert response.status_code == 200


def test_two_authorizations_are_none(api):
    response = api.client.post(
        "/v1/chat",
        json={"message": "hi"},
        headers=[("Authorization", f"Bearer {ALICE}"), ("Authorization", f"Bearer {ORDER_AGENT}")],
    )

    assert response.status_code == 401


def test_a_key_in_the_query_string_is_refused_even_beside_a_good_one(api):
    response = api.post("/v1/chat?key=ard_0123_secret", {"message": "hi"})

    assert (response.status_code, response.json()["code"]) == (400, "key_in_query")
    assert "secret" not in response.text


def test_nobody_is_asked_for_a_body_before_a_key(api):
    response = api.send(b"x" * 100_000, key=None, content_type="text/plain")

    assert response.status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "key"),
    [
        ("POST", "/v1/agents/order/heartbeat", ALICE),
        ("POST", "/v1/agents", ALICE),
        ("POST", "/v1/agents/try", ALICE),
        ("DELETE", "/v1/agents/order", ALICE),
        ("POST", "/v1/route", ORDER_AGENT),
        ("GET", "/v1/requests/x", ORDER_AGENT),
    ],
)
def test_a_key_of_another_role_is_refused(api, method, path, key):
    response = api.call(method, path, key=key)

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")


def test_the_one_identity_of_development_may_do_everything_without_a_key(api):
    api.access.anonymous = Identity(role=Role.CALLER, subject="development", grants=None, every_role=True)

    assert api.post("/v1/chat", {"message": "hi"}, key=None).status_code == 200
    assert api.call("GET", "/v1/agents", key=None).status_code == 200
    assert api.call("DELETE", "/v1/agents/order", key=None).status_code == 204


def test_without_the_keys_nobody_is_let_in(api):
    api.access.failure = UnavailableError("keys can't be read from 10.0.0.7")

    response = api.call("GET", "/v1/agents")

    assert response.status_code == 503
    assert "10.0.0.7" not in response.text
