import pytest

from dispatcher.dispatch.lifecycle.dead_letter import Cause
from dispatcher.gateway.dead_models import DeadLetterReply, DeadLettersReply
from tests.gateway.stubs import ADMIN, ALICE


def test_dead_letters_are_listed_with_their_causes(api):
    reply = DeadLettersReply.model_validate_json(api.call("GET", "/v1/dead", key=ADMIN).content)

    assert [(letter.cause, letter.source) for letter in reply.dead_letters] == [
        ("exhausted", None),
        ("poison", "results"),
    ]
    assert api.dead.asked[0][1].limit == 50


def test_the_filter_is_passed_on(api):
    query = "cause=agent_error&agent_id=order&capability=order.query&retried=false&limit=7"

    assert api.call("GET", f"/v1/dead?{query}", key=ADMIN).status_code == 200

    ((cause, wanted),) = api.dead.asked
    assert cause is Cause.AGENT_ERROR
    assert (wanted.agent_id, wanted.capability, wanted.retried, wanted.limit) == (
        "order",
        "order.query",
        False,
        7,
    )


@pytest.mark.parametrize("query", ["cause=bad", "limit=0", "limit=501", "retried=perhaps", "unknown=1"])
def test_a_filter_that_makes_no_sense_is_refused(api, query):
    response = api.call("GET", f"/v1/dead?{query}", key=ADMIN)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_one_dead_task_comes_with_its_words_and_one_dead_frame_with_its_body(api):
    task = api.call("GET", f"/v1/dead/{api.dead.task.dead_id}", key=ADMIN)
    frame = api.call("GET", "/v1/dead/f1", key=ADMIN)

    assert DeadLetterReply.model_validate_json(task.content).text == "where is my order"
    assert DeadLetterReply.model_validate_json(frame.content).body == "junk"


def test_a_dead_task_can_be_done_again_and_be_given_to_somebody(api):
    dead_id = api.dead.task.dead_id

    again = api.call("POST", f"/v1/dead/{dead_id}/retry", key=ADMIN, json={})
    routed = api.call(
        "POST",
        f"/v1/dead/{dead_id}/retry",
        key=ADMIN,
        json={"agent_id": "order"},
        headers={"Idempotency-Key": '"mine"'},
    )

    assert (again.status_code, again.headers["Location"]) == (202, "/v1/requests/again")
    assert routed.json() == {"request_id": "again", "status": "open"}
    assert api.dead.retried == [(dead_id, None, None), (dead_id, "order", "mine")]


def test_what_is_not_there_or_belongs_to_nothing_is_not_done_again(api):
    unknown = api.call("POST", "/v1/dead/nothing/retry", key=ADMIN, json={})
    frame = api.call("POST", "/v1/dead/f1/retry", key=ADMIN, json={})

    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert (frame.status_code, frame.json()["code"]) == (409, "not_retryable")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/dead"), ("GET", "/v1/dead/f1"), ("POST", "/v1/dead/f1/retry")]
)
def test_dead_letters_are_for_administrators(api, method, path):
    assert api.call(method, path, key=ALICE).status_code == 403
