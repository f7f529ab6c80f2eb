import pytest

from dispatcher.dispatch.lifecycle.judgement import Judgement, Verdict
from dispatcher.identifiers import Capability, new_id
from tests.gateway.stubs import ADMIN, BOB


@pytest.fixture
def path(api):
    request_id = api.post("/v1/chat", {"message": "where is my order"}).json()["request_id"]
    return f"/v1/requests/{request_id}/feedback"


def test_judgements_are_handed_over_with_who_gave_them(api, path):
    judgement = {"verdict": "wrong_capability", "capability": "refund", "comment": "they wanted money back"}

    reply = api.post(path, {"judgements": [judgement]})

    assert (reply.status_code, reply.json()["recorded"]) == (200, 1)
    ((state, judgements, identity),) = api.judge.given
    assert judgements == [
        Judgement(
            position=0,
            verdict=Verdict.WRONG_CAPABILITY,
            capability=Capability("refund"),
            comment="they wanted money back",
        )
    ]
    assert (state.request.caller, identity.subject) == ("alice", "alice")


def test_an_administrator_judges_every_request_and_others_only_their_own(api, path):
    body = {"judgements": [{"verdict": "right"}]}

    assert api.call("POST", path, key=ADMIN, json=body).status_code == 200
    assert api.call("POST", path, key=BOB, json=body).status_code == 404
    assert api.post(f"/v1/requests/{new_id()}/feedback", body).status_code == 404
    assert len(api.judge.given) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"judgements": []},
        {"judgements": [{"verdict": "perhaps"}]},
        {"judgements": [{"position": 0}]},
        {"judgements": [{"verdict": "right", "position": 8}]},
        {"judgements": [{"verdict": "right", "position": "0"}]},
        {"judgements": [{"verdict": "right", "capability": "refund"}]},
        {"judgements": [{"verdict": "wrong_capability", "capability": "Not A Name"}]},
        {"judgements": [{"verdict": "right", "comment": "x" * 2001}]},
        {"judgements": [{"verdict": "right"}] * 9},
    ],
)
def test_what_makes_no_sense_is_refused_and_not_handed_over(api, path, body):
    reply = api.post(path, body)

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_body")
    assert api.judge.given == []
