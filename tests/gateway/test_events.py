import json

import pytest

from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, PartialRecord, RequestStatus
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.gateway.models import EVENT_DATA, AcceptedReply
from dispatcher.identifiers import AgentId, RequestId, TaskId, new_id
from dispatcher.records import replace
from tests.gateway.stubs import ADMIN, ALICE, BOB, ORDER, ORDER_AGENT, SECRET, record, request_state

HELLO = {"message": "where is my order"}
STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def request_id(api):
    state = request_state(new_id(), "alice", status=RequestStatus.COMPLETED)
    attempt = Attempt(
        task_id=TaskId("t1"),
        request_id=state.request.request_id,
        number=1,
        agent_id=AgentId("order"),
        token="secret-token",  # noqa: S106 - nobody's
        status=AttemptStatus.SUCCEEDED,
        not_before_ms=0,
        timeout_ms=30_000,
    )
    api.dispatcher.states[state.request.request_id] = replace(state, attempts=(attempt,))
    piece = PartialRecord(
        task_id=TaskId("t1"),
        request_id=state.request.request_id,
        attempt=1,
        sequence=0,
        document='{"text": "It is", "data": {}}',
    )
    api.watcher.pieces = {TaskId("t1"): (piece,)}
    api.watcher.records = (replace(record(), request_id=state.request.request_id),)
    return state.request.request_id


def events(response):
    """The events of a finished stream as (id, event, data)."""
    found = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return found


def test_a_message_is_answered_by_its_events(api):
    response = api.post("/v1/chat", HELLO, headers=STREAM)

    told = events(response)
    assert response.headers["content-type"] == "text/event-stream"
    assert [name for _, name, _ in told] == ["accepted", "plan", "result", "answer"]
    assert response.headers["Location"] == f"/v1/requests/{told[0][2]['request_id']}"
    assert told[-1][2] == api.call("GET", response.headers["Location"]).json()


@pytest.mark.parametrize("key", [ALICE, ADMIN])
def test_every_event_is_as_it_is_documented(api, request_id, key):
    told = events(api.call("GET", f"/v1/requests/{request_id}/events", key=key, headers=STREAM))

    for _, name, data in told:
        EVENT_DATA[name].model_validate_json(json.dumps(data))
    assert [name for _, name, _ in told] == [name for name in EVENT_DATA if name != "progress"]
    assert "secret-token" not in str(told)


def test_an_open_request_keeps_its_stream_open(api, request_id):
    api.dispatcher.states[request_id] = request_state(request_id, "alice")

    response = api.call("GET", f"/v1/requests/{request_id}/events")

    assert [name for _, name, _ in events(response)] == ["accepted", "plan", "decision"]
    assert response.text.endswith("\n\n: keep-alive\n\n")


def test_what_was_not_granted_is_hidden_here_too(api, request_id):
    api.watcher.records = (record(capability=SECRET),)

    shown = api.call("GET", f"/v1/requests/{request_id}/events", key=ADMIN)
    hidden = api.call("GET", f"/v1/requests/{request_id}/events", key=ALICE)

    assert SECRET in shown.text
    assert "secret" not in hidden.text
    assert ORDER in hidden.text


def test_a_stream_goes_on_after_the_last_event(api, request_id):
    path = f"/v1/requests/{request_id}/events"
    told = events(api.call("GET", path))

    for number, (event_id, _, _) in enumerate(told[:-1], 1):
        rest = api.call("GET", path, headers={"Last-Event-ID": event_id})
        assert events(rest) == told[number:]
    over = api.call("GET", path, headers={"Last-Event-ID": told[-1][0]})
    assert (over.status_code, over.content) == (204, b"")


def test_an_empty_last_event_id_means_from_the_beginning(api, request_id):
    path = f"/v1/requests/{request_id}/events"

    assert api.call("GET", path, headers={"Last-Event-ID": ""}).text == api.call("GET", path).text


@pytest.mark.parametrize("event_id", ["x", "0", "a" * 9000, "-1", "\t", "é".encode()])
def test_an_id_of_no_event_is_refused(api, request_id, event_id):
    response = api.call("GET", f"/v1/requests/{request_id}/events", headers={"Last-Event-ID": event_id})

    assert (response.status_code, response.json()["code"]) == (400, "invalid_event_id")


def test_the_event_of_another_request_is_refused(api, request_id):
    other = events(api.post("/v1/chat", HELLO, headers=STREAM))[0][0]

    response = api.call("GET", f"/v1/requests/{request_id}/events", headers={"Last-Event-ID": other})

    assert (response.status_code, response.json()["code"]) == (400, "invalid_event_id")


def test_another_callers_request_has_no_events(api, request_id):
    foreign = api.call("GET", f"/v1/requests/{request_id}/events", key=BOB)
    unknown = api.call("GET", f"/v1/requests/{new_id()}/events")
    no_id = api.call("GET", "/v1/requests/x/events")

    assert [r.status_code for r in (foreign, unknown, no_id)] == [404, 404, 404]
    assert foreign.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("key", "status"), [("", 401), ("ard_wrong", 401), (ORDER_AGENT, 403)])
def test_only_callers_with_a_key_are_told(api, request_id, key, status):
    assert api.call("GET", f"/v1/requests/{request_id}/events", key=key).status_code == status


def test_whoever_takes_no_events_is_told_so(api, request_id):
    response = api.call("GET", f"/v1/requests/{request_id}/events", headers={"Accept": "application/json"})

    assert (response.status_code, response.json()["code"]) == (406, "not_acceptable")


@pytest.mark.parametrize("method", ["HEAD", "POST", "DELETE"])
def test_events_can_only_be_got(api, request_id, method):
    response = api.client.request(method, f"/v1/requests/{request_id}/events")

    assert response.status_code == 405
    assert response.headers["Allow"] == "GET"


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "*/*", "text/html"])
def test_a_message_is_answered_in_json_unless_events_are_preferred(api, accept):
    response = api.post("/v1/chat", HELLO, headers={"Accept": accept})

    assert response.json()["status"] == "completed"


def test_without_a_place_nothing_is_accepted(api, request_id):
    api.watcher.is_full = True

    posted = api.post("/v1/chat", HELLO, headers=STREAM)
    followed = api.call("GET", f"/v1/requests/{request_id}/events")

    assert [(r.status_code, r.json()["code"]) for r in (posted, followed)] == [(503, "too_many_waiting")] * 2
    assert posted.headers["Retry-After"] == "1"
    assert api.dispatcher.submitted == []


def test_what_is_wrong_with_a_message_is_an_ordinary_problem(api):
    invalid = api.post("/v1/chat", {"message": ""}, headers=STREAM)
    api.dispatcher.failure = OverloadedError("the queue of writes is full", retry_after_s=7)
    overloaded = api.post("/v1/chat", HELLO, headers=STREAM)

    assert (invalid.status_code, overloaded.status_code) == (422, 503)
    assert overloaded.headers["Retry-After"] == "7"


def test_what_was_accepted_is_never_refused_afterwards(api):
    api.watcher.failure = UnavailableError("the database at 10.0.0.7 is gone")

    response = api.post("/v1/chat", HELLO, headers=STREAM)

    reply = AcceptedReply.model_validate_json(response.content)
    assert response.status_code == 202
    assert response.headers["Location"] == f"/v1/requests/{reply.request_id}"


def test_without_the_ledger_following_answers_503(api, request_id):
    api.watcher.failure = UnavailableError("gone")

    assert api.call("GET", f"/v1/requests/{request_id}/events").status_code == 503


def test_a_message_without_a_key_cannot_be_resumed_and_is_not_done_again(api):
    last = events(api.post("/v1/chat", HELLO, headers=STREAM))[0][0]

    response = api.post("/v1/chat", HELLO, headers={**STREAM, "Last-Event-ID": last})

    assert (response.status_code, response.json()["code"]) == (400, "invalid_event_id")
    assert len(api.dispatcher.submitted) == 1


def test_a_message_with_a_key_is_resumed(api):
    headers = {**STREAM, "Idempotency-Key": "k1"}
    told = events(api.post("/v1/chat", HELLO, headers=headers))

    rest = api.post("/v1/chat", HELLO, headers={**headers, "Last-Event-ID": told[1][0]})

    assert rest.headers["Idempotency-Replayed"] == "true"
    assert events(rest) == told[2:]


def test_a_first_message_with_a_stale_event_id_is_told_from_the_beginning(api):
    headers = {**STREAM, "Idempotency-Key": "new", "Last-Event-ID": "whatever"}

    response = api.post("/v1/chat", HELLO, headers=headers)

    assert events(response)[0][1] == "accepted"


def test_the_state_of_a_request_may_be_gone_when_it_is_followed(api, request_id):
    del api.dispatcher.states[RequestId(request_id)]

    assert api.call("GET", f"/v1/requests/{request_id}/events").status_code == 404
