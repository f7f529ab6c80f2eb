import pytest

from dispatcher.dispatch.lifecycle.request import RequestStatus
from dispatcher.errors import OverloadedError, RequestError, UnavailableError
from dispatcher.gateway.body import digest_document
from dispatcher.gateway.models import AcceptedReply, ExplanationReply, RequestReply
from tests.gateway.stubs import ADMIN, ALICE, BOB, ORDER_AGENT, SECRET

HELLO = {"message": "where is my order"}


def test_an_ended_request_is_answered_with_its_parts(api):
    response = api.post("/v1/chat", HELLO)

    reply = RequestReply.model_validate_json(response.content)
    assert response.status_code == 200
    assert (reply.status, reply.answer) == ("completed", "It is on its way.")
    assert [(p.capability, p.agent_id, p.status) for p in reply.parts] == [
        ("order.query", "order", "completed")
    ]
    assert reply.parts[0].result is not None
    assert reply.parts[0].result.data == {"amount": 12.5}


def test_past_the_wait_the_reply_says_where_to_look(api):
    api.dispatcher.ends = False

    response = api.post("/v1/chat", {**HELLO, "wait_s": 0})

    reply = AcceptedReply.model_validate_json(response.content)
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/requests/{reply.request_id}"
    assert api.dispatcher.waits == [0]


def test_without_a_wait_the_default_is_waited(api):
    api.post("/v1/chat", HELLO)

    assert api.dispatcher.waits == [30]


@pytest.mark.parametrize("prefer", ["respond-async", "wait=5, Respond-Async", "respond-async;x=1"])
def test_who_prefers_not_to_wait_gets_202_at_once(api, prefer):
    response = api.post("/v1/chat", HELLO, headers={"Prefer": prefer})

    assert response.status_code == 202
    assert response.headers["Preference-Applied"] == "respond-async"
    assert api.dispatcher.expected == [False]
    assert api.dispatcher.waits == []


def test_the_message_reaches_dispatch_as_it_was_sent(api):
    api.post(
        "/v1/chat",
        {
            "message": "你好 👋",
            "session_id": "s1",
            "user_id": "u1",
            "language": "zh-CN",
            "context": {"amount": 12.5, "deep": [{"x": None}]},
            "capability": "order.query",
            "environment": "staging",
        },
    )

    message = api.dispatcher.submitted[0]
    assert (message.message, message.session_id, message.user_id) == ("你好 👋", "s1", "u1")
    assert (message.language, message.capability, message.environment) == ("zh", "order.query", "staging")
    assert message.context == {"amount": 12.5, "deep": [{"x": None}]}


def test_without_an_environment_the_default_one_is_meant(api):
    api.post("/v1/chat", HELLO)

    assert api.dispatcher.submitted[0].environment == "production"


def test_a_body_is_told_from_others_where_its_key_may_come_again(api):
    api.post("/v1/chat", HELLO)
    api.post("/v1/chat", HELLO, headers={"Idempotency-Key": "k1"})

    without, with_key = api.dispatcher.submitted
    assert without.body_digest == ""
    assert with_key.body_digest == digest_document({**HELLO})


def test_quoted_and_bare_keys_are_the_same_key(api):
    first = api.post("/v1/chat", HELLO, headers={"Idempotency-Key": "k1"})
    second = api.post("/v1/chat", HELLO, headers={"Idempotency-Key": '"k1"'})

    assert second.json() == first.json()
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"


def test_the_same_body_in_another_spelling_is_a_replay(api):
    headers = {"Idempotency-Key": "k1"}
    first = api.send(b'{"message":"a","user_id":"u"}', headers=headers)
    second = api.send(b'{ "user_id": "\\u0075", "message": "a" }', headers=headers)

    assert second.json()["request_id"] == first.json()["request_id"]


def test_a_key_with_another_body_is_refused(api):
    api.post("/v1/chat", HELLO, headers={"Idempotency-Key": "k1"})

    response = api.post("/v1/chat", {"message": "other"}, headers={"Idempotency-Key": "k1"})

    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_two_callers_may_use_the_same_key(api):
    first = api.post("/v1/chat", HELLO, headers={"Idempotency-Key": "k1"}, key=ALICE)
    second = api.post("/v1/chat", HELLO, headers={"Idempotency-Key": "k1"}, key=BOB)

    assert first.json()["request_id"] != second.json()["request_id"]


def test_a_replay_of_an_ended_request_is_answered_even_when_not_to_wait(api):
    headers = {"Idempotency-Key": "k1", "Prefer": "respond-async"}
    api.post("/v1/chat", HELLO, headers=headers)

    response = api.post("/v1/chat", HELLO, headers=headers)

    assert (response.status_code, response.json()["status"]) == (200, "completed")


@pytest.mark.parametrize(
    "key", ["", '""', '"open', '"a"b"', "two words", "k" * 129, "ключ".encode(), '"a b"']
)
def test_a_key_of_another_form_is_refused(api, key):
    response = api.post("/v1/chat", HELLO, headers={"Idempotency-Key": key})

    assert (response.status_code, response.json()["code"]) == (422, "invalid_idempotency_key")


def test_what_was_accepted_is_never_refused_afterwards(api):
    api.dispatcher.wait_failure = UnavailableError("the database at 10.0.0.7 is gone")

    response = api.post("/v1/chat", HELLO)

    assert response.status_code == 202
    assert response.json()["request_id"] in api.dispatcher.states


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (RequestError("no agent declares it", code="unknown_capability"), 422, "unknown_capability"),
        (RequestError("not granted", code="capability_not_granted"), 403, "capability_not_granted"),
        (UnavailableError("the database at 10.0.0.7 is gone"), 503, "unavailable"),
    ],
)
def test_each_refusal_of_dispatch_has_its_status(api, failure, status, code):
    api.dispatcher.failure = failure

    response = api.post("/v1/chat", HELLO)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert "10.0.0.7" not in response.text


def test_overload_says_when_to_come_back(api):
    api.dispatcher.failure = OverloadedError("the queue of writes is full", retry_after_s=7)

    response = api.post("/v1/chat", HELLO)

    assert (response.status_code, response.headers["Retry-After"]) == (503, "7")


def test_a_replica_that_stops_takes_no_new_messages(api):
    api.is_stopping = True

    response = api.post("/v1/chat", HELLO)

    assert (response.status_code, response.json()["code"]) == (503, "stopping")
    assert int(response.headers["Retry-After"]) >= 1
    assert api.dispatcher.submitted == []


def test_a_replica_that_stops_still_tells_of_old_requests(api):
    request_id = api.post("/v1/chat", HELLO).json()["request_id"]
    api.is_stopping = True

    assert api.call("GET", f"/v1/requests/{request_id}").status_code == 200


def test_an_explanation_shows_plan_and_candidates_and_sends_nothing(api):
    response = api.post("/v1/route", HELLO, key=ADMIN)

    reply = ExplanationReply.model_validate_json(response.content)
    assert response.status_code == 200
    assert reply.intents[0].entities[0]["value"] == "A1"
    assert [c.agent_id for c in reply.decisions[0].candidates] == ["order", "secret"]
    assert api.dispatcher.states == {}


def test_a_caller_sees_no_candidate_of_a_capability_it_was_not_granted(api):
    response = api.post("/v1/route", HELLO, key=ALICE)

    assert [c["agent_id"] for c in response.json()["decisions"][0]["candidates"]] == ["order"]
    assert "secret" not in response.text
    assert "not_granted" not in response.text


def test_a_winner_that_was_not_granted_looks_out_of_scope(api):
    api.dispatcher.winner = SECRET

    response = api.post("/v1/route", HELLO, key=ALICE)

    decision, intent = response.json()["decisions"][0], response.json()["intents"][0]
    assert (decision["outcome"], decision["capability"], decision["agent_id"]) == ("out_of_scope", None, None)
    assert (intent["capability"], intent["confidence"]) == (None, 0)
    assert "secret" not in response.text


def test_an_explanation_does_not_wait(api):
    response = api.post("/v1/route", {**HELLO, "wait_s": 1})

    assert response.json()["errors"] == [{"pointer": "/*", "reason": "This field is not known here."}]


def test_an_agent_key_can_not_chat(api):
    assert api.post("/v1/chat", HELLO, key=ORDER_AGENT).status_code == 403


def test_every_terminal_status_is_a_documented_one():
    documented = RequestReply.model_fields["status"].annotation

    assert set(documented.__args__) == {status.value for status in RequestStatus}  # type: ignore[union-attr]
