import pytest

from dispatcher.gateway.route_models import RouteListReply
from dispatcher.protocol.direct import DirectKeys
from dispatcher.registry.access import Identity, Role
from tests.gateway.stubs import ADMIN, ALICE, ORDER, ORDER_AGENT


def test_a_caller_is_told_who_would_take_its_work_now(api):
    response = api.call("GET", "/v1/route/order.query", key=ALICE)

    reply = RouteListReply.model_validate_json(response.content)
    assert response.headers["cache-control"] == "no-store"
    assert (reply.caller, reply.expires_in_s, reply.retry_after_ms) == ("alice", 5.0, 437)
    assert [one.agent_id for one in reply.candidates] == ["order", "order-two"]
    assert [one.direct is not None for one in reply.candidates] == [True, False]
    assert api.routes.asked == [(ORDER, "production")]


def test_the_environment_may_be_named(api):
    api.call("GET", "/v1/route/order.query?environment=staging", key=ADMIN)

    assert api.routes.asked == [(ORDER, "staging")]


@pytest.mark.parametrize("capability", ["secret.thing", "no.such", "Order", "%00", "o" * 5000, "..%2fx"])
def test_what_is_not_granted_is_answered_like_what_is_not_there(api, capability):
    response = api.call("GET", f"/v1/route/{capability}", key=ALICE)

    assert response.status_code == 404
    if "%" not in capability:
        assert response.json() == api.call("GET", "/v1/route/not.there", key=ALICE).json()


def test_agents_dispatch_nothing(api):
    assert api.call("GET", "/v1/route/order.query", key=ORDER_AGENT).status_code == 403
    assert api.call("GET", "/v1/route/order.query", key=None).status_code == 401
    assert api.routes.asked == []


def test_an_agent_gets_its_own_keys(api):
    response = api.call("GET", "/v1/agents/order/direct-keys", key=ORDER_AGENT)

    keys = DirectKeys.model_validate_json(response.content)
    assert response.headers["cache-control"] == "no-store"
    assert ([key.key_id for key in keys.keys], keys.renew_in_s) == (["7", "8"], 60)


@pytest.mark.parametrize("key", [ALICE, ADMIN])
def test_nobody_else_gets_an_agents_keys(api, key):
    assert api.call("GET", "/v1/agents/order/direct-keys", key=key).status_code == 403


def test_an_agent_does_not_get_anothers_keys(api):
    response = api.call("GET", "/v1/agents/faq/direct-keys", key=ORDER_AGENT)

    assert (response.status_code, "secret" in response.text) == (403, False)


def test_there_are_no_keys_for_an_agent_that_allows_no_direct_calls(api):
    api.access.anonymous = Identity(role=Role.AGENT, subject="faq")

    response = api.call("GET", "/v1/agents/faq/direct-keys", key="ard_faq")

    assert (response.status_code, response.json()["code"]) == (404, "not_found")
