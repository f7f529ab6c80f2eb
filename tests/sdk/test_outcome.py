"""From what a handler returns to the frame that is sent."""

import pytest
from pydantic import BaseModel, RootModel

from dispatcher.protocol.frames import ResultFrame, ResultStatus
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.outcome import BUSY, EXPIRED, Outcome, failure, outcome_of, outcome_unknown
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from tests.sdk.stub_link import task_frame


class Total(BaseModel):
    total: float


def test_text_alone_is_a_success():
    outcome = outcome_of("done")

    assert (outcome.status, outcome.result.text, outcome.result.data) == (ResultStatus.SUCCESS, "done", {})


def test_a_model_alone_is_data():
    assert outcome_of(Total(total=2.5)).result.data == {"total": 2.5}


@pytest.mark.parametrize("data", [Total(total=2.5), {"total": 2.5}])
def test_a_reply_carries_text_data_and_what_goes_with_them(data):
    outcome = outcome_of(Reply(text="done", data=data, usage={"calls": 1}, context_update={"seen": True}))

    assert (outcome.result.text, outcome.result.data) == ("done", {"total": 2.5})
    assert (outcome.usage, outcome.context_update) == ({"calls": 1}, {"seen": True})


def test_a_question_back_is_needs_input():
    outcome = outcome_of(NeedsInput("Which order?", ("order_number",)))

    assert outcome.status is ResultStatus.NEEDS_INPUT
    assert outcome.result.text == "Which order?"
    assert outcome.result.data == {"fields": ["order_number"]}


def test_a_business_error_is_a_success_that_counts_as_failure():
    outcome = outcome_of(BusinessError("Sold out.", "sold_out"))

    assert outcome.status is ResultStatus.SUCCESS
    assert outcome.business_error
    assert (outcome.result.text, outcome.error_code) == ("Sold out.", "sold_out")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        Reply(data={"at": object()}),
        Reply(data={"rate": float("nan")}),
        Reply(text="\ud800"),
        RootModel[list[int]]([1]),
    ],
)
def test_what_cannot_be_sent_is_an_agent_error(answer):
    outcome = outcome_of(answer)

    assert (outcome.status, outcome.error_code, outcome.can_retry) == (
        ResultStatus.ERROR,
        "agent_error",
        False,
    )


def test_a_reply_over_the_frame_limit_is_an_error_of_its_own():
    assert outcome_of("x" * MAX_FRAME_BYTES).error_code == "result_too_large"


def test_a_message_for_operators_is_cut_to_its_limit():
    assert failure("agent_error", "x" * 5000).error_message == "x" * 2000


@pytest.mark.parametrize("outcome", [BUSY, EXPIRED, outcome_of("done"), outcome_unknown(idempotent=True)])
def test_a_stored_outcome_is_read_back_equal(outcome):
    assert Outcome.decode(outcome.encode()) == outcome


def test_a_frame_answers_the_delivery_that_asks():
    task = task_frame(attempt=2)

    frame = ResultFrame.model_validate_json(outcome_of("done").answer_to(task, "instance-1"))

    assert (frame.task_id, frame.attempt, frame.token) == (task.task_id, 2, task.token)
    assert (frame.instance_id, frame.result.text) == ("instance-1", "done")
