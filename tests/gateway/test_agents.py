import pytest
from starlette.testclient import TestClient

from dispatcher.errors import RegistrationError
from dispatcher.gateway.models import AgentReply, AgentsReply, TrialReply
from dispatcher.protocol.frames import DrainFrame, HeartbeatFrame, RegisteredFrame, RegisterFrame
from tests.gateway.stubs import ADMIN, ALICE, ORDER_AGENT, register_body

BEAT = {"instance_id": "i1", "lease_id": "l1", "running": 2}
LEASE = {"instance_id": "i1", "lease_id": "l1"}


def test_a_known_agent_gets_a_lease(api):
    response = api.post("/v1/agents", register_body(), key=ORDER_AGENT)

    assert response.status_code == 200
    assert RegisteredFrame.model_validate_json(response.content).lease_id == "l1"
    assert isinstance(api.registrar.told[0], RegisterFrame)


def test_a_new_agent_is_created(api):
    response = api.post("/v1/agents", register_body(agent_id="new"), key=ADMIN)

    assert response.status_code == 201


def test_an_agent_can_not_register_another(api):
    response = api.post("/v1/agents", register_body(agent_id="faq"), key=ORDER_AGENT)

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert api.registrar.told == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/agents/faq/heartbeat", BEAT),
        ("POST", "/v1/agents/faq/drain", LEASE),
        ("DELETE", "/v1/agents/faq/leases/l1", None),
        ("DELETE", "/v1/agents/faq", None),
        ("GET", "/v1/agents/faq", None),
    ],
)
def test_an_agent_can_not_act_for_another(api, method, path, body):
    response = api.call(method, path, json=body, key=ORDER_AGENT)

    assert (response.status_code, response.json()["code"]) == (403, "forbidden")
    assert api.registrar.told == []


@pytest.mark.parametrize("role", [ORDER_AGENT, ADMIN])
def test_heartbeats_drains_and_leaves_reach_the_registrar(api, role):
    assert api.post("/v1/agents/order/heartbeat", BEAT, key=role).status_code == 204
    assert api.post("/v1/agents/order/drain", LEASE, key=role).status_code == 204
    assert api.call("DELETE", "/v1/agents/order/leases/l1", key=role).status_code == 204
    assert api.call("DELETE", "/v1/agents/order", key=role).status_code == 204

    beat, *others = api.registrar.told
    assert isinstance(beat, HeartbeatFrame)
    assert (beat.agent_id, beat.running) == ("order", 2)
    assert others == [("drain", "order", "l1"), ("leave", "order", "l1"), ("remove", "order")]


def test_a_whole_frame_is_taken_too(api):
    frame = DrainFrame(agent_id="order", instance_id="i1", lease_id="l1")

    response = api.send(frame.model_dump_json().encode(), path="/v1/agents/order/drain", key=ORDER_AGENT)

    assert response.status_code == 204


def test_a_frame_of_another_agent_than_the_paths_is_refused(api):
    response = api.post("/v1/agents/order/heartbeat", {**BEAT, "agent_id": "faq"}, key=ADMIN)

    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/agent_id"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("private_inbox", 409),
        ("memory_inbox_not_idempotent", 409),
        ("incompatible_schema", 409),
        ("instance_id_taken", 409),
        ("lease_superseded", 409),
        ("unknown_agent", 404),
        ("duplicate_capability", 422),
        ("invalid_schema", 422),
    ],
)
def test_each_refusal_of_the_registrar_has_its_status(api, code, status):
    api.registrar.failure = RegistrationError("refused", code=code, fields=("amount",))

    response = api.post("/v1/agents/order/heartbeat", BEAT, key=ORDER_AGENT)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.json()["fields"] == ["amount"]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"key": "ard_order"}, "/key"),
        ({"owner": "me"}, "/*"),
        ({"agent_id": "Order"}, "/agent_id"),
        ({"agent_id": "o" * 65}, "/agent_id"),
        ({"declaration": {"capabilities": []}}, "/declaration/capabilities"),
        (
            {"declaration": {"capabilities": [{"name": "a", "descriptions": ["x"], "secret_field": 1}]}},
            "/declaration/capabilities/0/*",
        ),
        (
            {"declaration": {"capabilities": [{"name": "a", "descriptions": ["x" * 501]}]}},
            "/declaration/capabilities/0/descriptions/0",
        ),
        (
            {"declaration": {"capabilities": [{"name": "a", "descriptions": ["x"], "examples": ["e"] * 21}]}},
            "/declaration/capabilities/0/examples",
        ),
        (
            {"declaration": {"capabilities": [{"name": "a", "descriptions": ["x"]}] * 65}},
            "/declaration/capabilities",
        ),
    ],
)
def test_a_registration_that_does_not_fit_is_refused_by_place(api, changes, pointer):
    response = api.post("/v1/agents", register_body(**changes), key=ORDER_AGENT)

    assert response.status_code == 422
    assert [e["pointer"] for e in response.json()["errors"]] == [pointer]
    assert "secret_field" not in response.text
    assert "ard_order" not in response.text


@pytest.mark.parametrize("bad", ["Order", "%00", "o" * 5000, "%F0%9F%A6%8A", "..%2forder"])
def test_a_name_that_no_agent_can_have_is_unknown(api, bad):
    response = api.call("GET", f"/v1/agents/{bad}", key=ADMIN)

    assert response.status_code == 404


@pytest.mark.parametrize("bad", ["%00", "l" * 129, "%20"])
def test_a_lease_that_was_never_given_is_not_there(api, bad):
    response = api.call("DELETE", f"/v1/agents/order/leases/{bad}", key=ORDER_AGENT)

    assert response.status_code == 404
    assert api.registrar.told == []


def test_an_agent_that_is_not_registered_yet_is_unknown(api):
    response = api.call("GET", "/v1/agents/nobody", key=ADMIN)

    assert (response.status_code, response.json()["code"]) == (404, "unknown_agent")


def test_removing_an_unknown_agent_says_so(api):
    assert api.call("DELETE", "/v1/agents/nobody", key=ADMIN).json()["code"] == "unknown_agent"


def test_an_admin_sees_all_agents_and_an_agent_itself(api):
    everyone = AgentsReply.model_validate_json(api.call("GET", "/v1/agents", key=ADMIN).content)
    itself = AgentsReply.model_validate_json(api.call("GET", "/v1/agents", key=ORDER_AGENT).content)

    assert [a.agent_id for a in everyone.agents] == ["faq", "order"]
    assert [a.agent_id for a in itself.agents] == ["order"]


def test_one_agent_is_shown_with_what_was_observed(api):
    reply = AgentReply.model_validate_json(api.call("GET", "/v1/agents/order", key=ORDER_AGENT).content)

    assert (reply.status.liveness, reply.status.load) == ("alive", 0.25)
    assert reply.success == {"order.query": 0.8}
    assert reply.instances[0].name == "host-1"


def test_a_caller_learns_nothing_of_agents(api):
    assert api.call("GET", "/v1/agents", key=ALICE).status_code == 403


def test_a_trial_shows_where_a_declaration_would_rank(api):
    declaration = register_body()["declaration"]

    response = api.post("/v1/agents/try", {"declaration": declaration, "texts": ["hi"]}, key=ORDER_AGENT)

    ranking = TrialReply.model_validate_json(response.content).rankings[0]
    assert (ranking.text, ranking.rank) == ("hi", 1)
    assert ranking.capabilities[0].agents == {"order": 0.7}
    assert ranking.capabilities[0].score == 0.75
    assert api.tried[0][0] == "order"


def test_a_trial_by_an_admin_is_of_a_new_agent(api):
    declaration = register_body()["declaration"]

    api.post("/v1/agents/try", {"declaration": declaration, "texts": ["hi"]}, key=ADMIN)

    assert api.tried[0][0] == "new-agent"


def test_a_trial_may_take_the_place_of_a_named_agent(api):
    declaration = register_body()["declaration"]
    body = {"declaration": declaration, "texts": ["hi"], "agent_id": "faq"}

    assert api.post("/v1/agents/try", body, key=ADMIN).status_code == 200
    assert api.tried[0][0] == "faq"


def test_a_trial_in_anothers_place_is_refused(api):
    declaration = register_body()["declaration"]
    body = {"declaration": declaration, "texts": ["hi"], "agent_id": "faq"}

    assert api.post("/v1/agents/try", body, key=ORDER_AGENT).status_code == 403


@pytest.mark.parametrize("texts", [[], ["x"] * 21, [" "], ["x" * 2001]])
def test_a_trial_takes_a_few_short_texts(api, texts):
    body = {"declaration": register_body()["declaration"], "texts": texts}

    assert api.post("/v1/agents/try", body, key=ORDER_AGENT).status_code == 422


@pytest.mark.parametrize(
    ("client", "other_host"),
    [("192.0.2.7", "192.0.2.7"), ("127.0.0.1", None), ("::1", None), ("testserver", None), ("socket", None)],
)
def test_the_registrar_learns_which_other_host_asks(api, client, other_host):
    api.client = TestClient(api.app, client=(client, 50_000))

    api.post("/v1/agents", register_body(), key=ORDER_AGENT)

    assert api.registrar.clients == [other_host]
