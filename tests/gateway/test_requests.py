import pytest

from dispatcher.errors import UnavailableError
from dispatcher.gateway.models import DecisionsReply, RequestReply
from dispatcher.identifiers import new_id
from tests.gateway.stubs import ADMIN, ALICE, BOB, ORDER, SECRET, record


@pytest.fixture
def request_id(api):
    return api.post("/v1/chat", {"message": "where is my order"}).json()["request_id"]


def test_a_request_is_read_back_as_it_was_answered(api, request_id):
    response = api.call("GET", f"/v1/requests/{request_id}")

    reply = RequestReply.model_validate_json(response.content)
    assert (reply.request_id, reply.status) == (request_id, "completed")


def test_an_open_request_is_shown_with_its_open_parts(api):
    api.dispatcher.ends = False
    accepted = api.post("/v1/chat", {"message": "where is my order"}).headers["Location"]

    reply = RequestReply.model_validate_json(api.call("GET", accepted).content)

    assert (reply.status, reply.answer, reply.parts[0].status) == ("open", None, "open")


def test_another_callers_request_is_not_there(api, request_id):
    foreign = api.call("GET", f"/v1/requests/{request_id}", key=BOB)
    unknown = api.call("GET", f"/v1/requests/{new_id()}", key=BOB)

    assert foreign.status_code == 404
    assert foreign.json() == unknown.json()


def test_another_callers_decisions_are_not_there(api, request_id):
    assert api.call("GET", f"/v1/requests/{request_id}/decisions", key=BOB).status_code == 404


def test_an_admin_reads_every_request(api, request_id):
    assert api.call("GET", f"/v1/requests/{request_id}", key=ADMIN).status_code == 200


@pytest.mark.parametrize(
    "bad", ["x", "%00", "a" * 5000, "..%2f..%2fetc", "%F0%9F%A6%8A", "%ff", "'%20or%201=1"]
)
@pytest.mark.parametrize("tail", ["", "/decisions"])
def test_an_id_of_another_form_is_not_there(api, bad, tail):
    response = api.call("GET", f"/v1/requests/{bad}{tail}")

    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_decisions_come_with_their_candidates(api, request_id):
    api.dispatcher.records = (record(0, 1), record(0, 2))

    response = api.call("GET", f"/v1/requests/{request_id}/decisions")

    reply = DecisionsReply.model_validate_json(response.content)
    assert [(d.position, d.number, d.capability) for d in reply.decisions] == [(0, 1, ORDER), (0, 2, ORDER)]


def test_a_stored_decision_hides_what_was_not_granted(api, request_id):
    api.dispatcher.records = (record(capability=SECRET),)

    hidden = api.call("GET", f"/v1/requests/{request_id}/decisions", key=ALICE)
    shown = api.call("GET", f"/v1/requests/{request_id}/decisions", key=ADMIN)

    assert "secret" not in hidden.text
    assert hidden.json()["decisions"][0]["outcome"] == "out_of_scope"
    assert shown.json()["decisions"][0]["capability"] == SECRET


def test_without_the_ledger_reading_answers_503(api, request_id):
    api.dispatcher.failure = UnavailableError("gone")

    assert api.call("GET", f"/v1/requests/{request_id}").status_code == 503


def test_an_open_request_is_cancelled(api):
    api.dispatcher.ends = False
    location = api.post("/v1/chat", {"message": "where is my order"}).headers["Location"]

    response = api.call("DELETE", location)

    reply = RequestReply.model_validate_json(response.content)
    assert (reply.status, reply.parts[0].status) == ("cancelled", "cancelled")
    assert api.call("GET", location).json() == response.json()


def test_a_request_that_has_ended_stays_as_it_is(api, request_id):
    response = api.call("DELETE", f"/v1/requests/{request_id}")

    assert response.status_code == 200
    assert response.json()["status"] == "completed"


def test_another_callers_request_cannot_be_cancelled(api):
    api.dispatcher.ends = False
    location = api.post("/v1/chat", {"message": "where is my order"}).headers["Location"]

    foreign = api.call("DELETE", location, key=BOB)
    unknown = api.call("DELETE", f"/v1/requests/{new_id()}")
    no_id = api.call("DELETE", "/v1/requests/x")

    assert [r.status_code for r in (foreign, unknown, no_id)] == [404, 404, 404]
    assert api.call("GET", location).json()["status"] == "open"
