"""What an agent's reply to a direct call means."""

import pytest

from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus
from dispatcher.sdk.direct_reply import SENTENCES, Fate, answer_of, read_reply
from dispatcher.sdk.transport import HttpResponse
from tests.sdk.stub_link import task_frame

TASK = task_frame()


def result(status: ResultStatus = ResultStatus.SUCCESS, text: str | None = "done", **fields) -> ResultFrame:
    made = {
        "request_id": TASK.request_id,
        "task_id": TASK.task_id,
        "attempt": TASK.attempt,
        "token": TASK.token,
        "instance_id": "one",
        "status": status,
        "result": ResultBody(text=text, data={"amount": 5}),
    }
    return ResultFrame(**{**made, **fields})


def responding(status: int, body: bytes = b"") -> HttpResponse:
    return HttpResponse(status=status, headers={}, body=body)


def with_body(frame: ResultFrame) -> HttpResponse:
    return responding(200, frame.model_dump_json().encode())


def test_a_result_of_this_attempt_is_the_result():
    assert read_reply(TASK, with_body(result())) == result()


@pytest.mark.parametrize("status", [401, 403, 404, 413, 429])
def test_a_call_that_is_refused_did_not_run(status):
    assert read_reply(TASK, responding(status)) is Fate.NOT_RUN


@pytest.mark.parametrize("status", [ResultStatus.BUSY, ResultStatus.EXPIRED])
def test_a_result_may_say_that_nothing_ran(status):
    assert read_reply(TASK, with_body(result(status))) is Fate.NOT_RUN


def test_a_server_that_asks_for_a_pause_did_not_run_it():
    assert read_reply(TASK, HttpResponse(status=503, headers={"retry-after": "1"}, body=b"")) is Fate.NOT_RUN


@pytest.mark.parametrize("status", [202, 302, 400, 500, 502, 503, 504])
def test_of_any_other_answer_nobody_knows(status):
    assert read_reply(TASK, responding(status)) is Fate.UNKNOWN


@pytest.mark.parametrize("changes", [{"token": "x" * 32}, {"attempt": 2}, {"task_id": "another"}])
def test_a_result_of_something_else_tells_nothing(changes):
    assert read_reply(TASK, with_body(result(**changes))) is Fate.UNKNOWN


def test_what_can_not_be_read_tells_nothing():
    assert read_reply(TASK, responding(200, b"<html>")) is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("frame", "part", "whole", "text", "code"),
    [
        (result(), "completed", "completed", "done", None),
        (result(text=None), "completed", "completed", SENTENCES["zh"]["completed"], None),
        (
            result(ResultStatus.NEEDS_INPUT, "which?"),
            "needs_input",
            "partial",
            "which?",
            "needs_input",
        ),
        (
            result(business_error=True, error_code="sold_out"),
            "failed",
            "failed",
            SENTENCES["zh"]["failed"],
            "sold_out",
        ),
        (
            result(business_error=True),
            "failed",
            "failed",
            SENTENCES["zh"]["failed"],
            "business_error",
        ),
        (
            result(ResultStatus.ERROR, error_message="password=hunter2"),
            "failed",
            "failed",
            SENTENCES["zh"]["failed"],
            "agent_error",
        ),
        (
            result(ResultStatus.ERROR, error_code="outcome_unknown"),
            "outcome_unknown",
            "failed",
            SENTENCES["zh"]["outcome_unknown"],
            "outcome_unknown",
        ),
    ],
)
def test_an_answer_says_what_the_gateway_would_say(frame, part, whole, text, code):
    answer = answer_of(TASK, frame, 0.9, 12)

    (only,) = answer["parts"]
    assert (only["status"], answer["status"], answer["answer"], answer["direct"]) == (part, whole, text, True)
    assert (only["error"] or {}).get("code") == code
    assert (only["result"] is None) == (frame.status is ResultStatus.ERROR)
    assert "hunter2" not in str(answer)


def test_languages_other_than_chinese_get_english_sentences():
    french = TASK.model_copy(update={"context": TASK.context.model_copy(update={"language": "fr"})})

    assert answer_of(french, result(text=None), 0.9, 12)["answer"] == SENTENCES["en"]["completed"]
