"""Parts that people do, over HTTP."""

import pytest

from dispatcher.dispatch.lifecycle.option import DescribedOption, options_document
from dispatcher.dispatch.lifecycle.request import TaskStatus
from dispatcher.gateway.handoff_models import HandoffReply, HandoffsReply
from dispatcher.gateway.models import DecisionsReply, RequestReply
from dispatcher.identifiers import Capability
from dispatcher.records import replace
from dispatcher.routing.decision import Option, Outcome
from dispatcher.routing.record import decision_document
from tests.gateway.stub_people import REQUEST
from tests.gateway.stubs import ADMIN, ALICE, ORDER, SECRET, decision, record

ANSWER = f"/v1/handoffs/{REQUEST}.0/answer"


@pytest.fixture
def become(api):
    """Make the only part of a fresh request something else; the request as it is read back."""

    def turned(**changes):
        request_id = api.post("/v1/chat", {"message": "where is my order"}).json()["request_id"]
        state = api.dispatcher.states[request_id]
        task = replace(state.tasks[0], agent_id=None, result_text=None, result_data=None, score=None)
        api.dispatcher.states[request_id] = replace(state, tasks=(replace(task, **changes),))
        response = api.call("GET", f"/v1/requests/{request_id}")
        return RequestReply.model_validate_json(response.content).parts[0]

    return turned


def test_open_parts_are_listed_and_answered_ones_if_that_is_wanted(api):
    reply = HandoffsReply.model_validate_json(api.call("GET", "/v1/handoffs", key=ADMIN).content)
    api.call("GET", f"/v1/handoffs?answered=true&limit=7&after={REQUEST}.0", key=ADMIN)

    assert [(one.task_id, one.state, one.text) for one in reply.handoffs] == [
        (f"{REQUEST}.0", "open", "sing a song")
    ]
    assert api.people.asked == [(False, 51, None), (True, 8, f"{REQUEST}.0")]


@pytest.mark.parametrize(("others", "shown", "more"), [(0, 1, False), (1, 2, False), (2, 2, True)])
def test_it_is_told_that_there_are_more(api, others, shown, more):
    api.people.others = others

    response = api.call("GET", "/v1/handoffs?limit=2", key=ADMIN)

    reply = HandoffsReply.model_validate_json(response.content)
    assert (len(reply.handoffs), reply.more) == (shown, more)


@pytest.mark.parametrize("query", ["answered=perhaps", "limit=0", "limit=501", "unknown=1", "after=nothing"])
def test_a_filter_that_makes_no_sense_is_refused(api, query):
    response = api.call("GET", f"/v1/handoffs?{query}", key=ADMIN)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_an_answer_is_kept_with_who_gave_it(api):
    response = api.post(ANSWER, {"answer": "la la"}, key=ADMIN)

    reply = HandoffReply.model_validate_json(response.content)
    assert (reply.state, reply.answer, reply.answered_by, reply.answered_ms) == (
        "answered",
        "la la",
        "root",
        7,
    )


def test_another_answer_is_a_conflict_and_the_same_one_is_not(api):
    answers = [api.post(ANSWER, {"answer": words}, key=ADMIN) for words in ("yes", "yes", "no")]
    others = ("/v1/handoffs/nothing/answer", f"/v1/handoffs/{REQUEST}.1/answer", "/v1/handoffs/%00/answer")
    unknown = [api.post(path, {"answer": "yes"}, key=ADMIN) for path in others]

    assert [one.status_code for one in answers] == [200, 200, 409]
    assert answers[2].json()["code"] == "already_answered"
    assert [(one.status_code, one.json()["code"]) for one in unknown] == [(404, "not_found")] * 3


@pytest.mark.parametrize(
    "body", [{}, {"answer": " "}, {"answer": "x" * 16_001}, {"answer": 1}, {"text": "yes"}]
)
def test_an_answer_that_says_nothing_is_refused(api, body):
    response = api.post(ANSWER, body, key=ADMIN)

    assert (response.status_code, api.people.handoff.answer) == (422, None)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/handoffs"), ("POST", ANSWER)])
def test_they_are_for_administrators(api, method, path):
    assert api.call(method, path, key=ALICE).status_code == 403


def test_the_caller_sees_the_answer_with_the_request(api, become):
    api.post(ANSWER, {"answer": "la la"}, key=ADMIN)

    part = become(status=TaskStatus.HANDED_OFF, error_code="handed_off")

    assert (part.status, part.capability) == ("handed_off", None)
    assert part.handoff.model_dump() == {"state": "answered", "answer": "la la", "answered_ms": 7}


def test_a_part_that_is_not_clear_comes_with_its_options(become):
    option = DescribedOption(capability=ORDER, description="looks up orders", similarity=0.9)

    part = become(status=TaskStatus.CLARIFY, error_code="ambiguous", result_data=options_document([option]))

    assert (part.status, part.error.code, part.result, part.handoff) == ("clarify", "ambiguous", None, None)
    assert [(one.number, one.capability, one.description) for one in part.options] == [
        (1, ORDER, "looks up orders")
    ]


def decisions(api, made):
    request_id = api.post("/v1/chat", {"message": "where is my order"}).json()["request_id"]
    api.dispatcher.records = (replace(record(0, 1), document=made),)
    response = api.call("GET", f"/v1/requests/{request_id}/decisions")
    return DecisionsReply.model_validate_json(response.content).decisions[0]


def test_options_that_the_caller_may_not_use_any_more_are_not_shown(api):
    options = (Option(ORDER, 0.9), Option(SECRET, 0.8))
    asked = replace(decision(), outcome=Outcome.CLARIFY, agent_id=None, options=options)

    shown = decisions(api, decision_document(asked))

    assert [one.capability for one in shown.options] == [ORDER]


def test_what_is_not_granted_looks_like_anything_else_that_a_person_does(api):
    hidden = replace(decision(SECRET), outcome=Outcome.HANDED_OFF, agent_id=None, reason="not_granted")
    foreign = replace(hidden, capability=Capability("other.secret"), reason="below_scope_floor")

    first, second = (decisions(api, decision_document(one)) for one in (hidden, foreign))

    assert (first.outcome, first.reason, first.capability) == ("handed_off", "out_of_scope", None)
    assert (second.outcome, second.reason, second.capability) == ("handed_off", "out_of_scope", None)
