"""From what a handler returns to the frame that is sent."""

import pytest
from pydantic import BaseModel, Field, RootModel

from dispatcher.protocol.frames import ResultFrame, ResultStatus
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.envelope import envelope_of
from dispatcher.sdk.outcome import (
    BUSY,
    EXPIRED,
    Outcome,
    UnusableReplyError,
    failure,
    outcome_of,
    outcome_unknown,
)
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from tests.sdk.stub_link import task_frame


class Total(BaseModel):
    total: float


class Price(BaseModel):
    total: float
    unit: str = Field(default="CNY", alias="priceUnit")


class Identity(BaseModel):
    id: int


def nested(levels: int) -> list[object]:
    inside: list[object] = []
    for _ in range(levels - 1):
        inside = [inside]
    return inside


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
        Reply(text="a\x00b"),
        Reply(data={"id": 2**70}),
        Reply(data={"id": 10**5000}),
        Reply(data={"\ud800": 1}),
        Reply(data={"a\x00b": 1}),
        Reply(data={"deep": nested(32)}),
        Reply(data={"deep": nested(5000)}),
        Reply(usage={"calls": 2**63}),
        Reply(context_update={"seen": "\x00"}),
        Identity(id=2**70),
        NeedsInput("Which\x00?"),
        BusinessError("Sold\x00out."),
        RootModel[list[int]]([1]),
    ],
)
def test_what_cannot_be_sent_is_refused(answer):
    with pytest.raises(UnusableReplyError, match="the reply can't be sent: "):
        outcome_of(answer)


def test_an_operator_is_told_where_a_reply_is_wrong_but_not_what_it_holds():
    with pytest.raises(UnusableReplyError) as caught:
        outcome_of(Reply(data={"id": 2**70}))

    assert (
        caught.value.message == "the reply can't be sent: data: Value error, holds an integer beyond 64 bits"
    )


@pytest.mark.parametrize(
    "data", [Total(total=2.5), {"total": 2.5}, {"total": "2.5"}, {"total": 2.5, "more": 1}, Price(total=2.5)]
)
def test_data_that_fits_the_declared_model_is_sent_as_that_model(data):
    assert outcome_of(Reply(text="done", data=data), Total).result.data == {"total": 2.5}


@pytest.mark.parametrize("answer", [Reply(data={"total": "secret"}), Reply(data={}), Identity(id=7)])
def test_data_that_does_not_fit_the_declared_model_names_the_field_and_not_the_value(answer):
    with pytest.raises(UnusableReplyError, match=r"its data does not fit Total: total: ") as caught:
        outcome_of(answer, Total)

    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "answer", [Reply(text="done"), "done", NeedsInput("Which?"), BusinessError("Sold out.")]
)
def test_an_answer_without_data_fits_any_model(answer):
    assert outcome_of(answer, Total).status is not ResultStatus.ERROR


def test_data_goes_under_the_names_that_its_schema_publishes():
    data = outcome_of(Price(total=2.5), Price).result.data

    assert set(data) == set(Price.model_json_schema(mode="serialization")["properties"])


def test_a_reply_at_the_bounds_is_sent():
    data = {"most": 2**63 - 1, "least": -(2**63) + 1, "deep": nested(31)}

    assert outcome_of(Reply(data=data)).result.data == data


def test_what_an_earlier_release_stored_and_cannot_be_sent_is_an_agent_error():
    stored = b'{"status": "success", "result": {"data": {"id": 1180591620717411303424}}}'

    assert Outcome.decode(stored).error_code == "agent_error"


def test_a_failure_can_always_be_told():
    outcome = failure("c\x00" * 64, "half a \ud800 pair and \x00" + "x" * 5000)

    assert outcome.error_code == "c?" * 32
    assert outcome.error_message == "half a ? pair and ?" + "x" * 1981
    assert Outcome.decode(outcome.encoded) == outcome


def test_a_reply_over_the_frame_limit_is_an_error_of_its_own():
    assert outcome_of("x" * MAX_FRAME_BYTES).error_code == "result_too_large"


def test_a_message_for_operators_is_cut_to_its_limit():
    assert failure("agent_error", "x" * 5000).error_message == "x" * 2000


@pytest.mark.parametrize("outcome", [BUSY, EXPIRED, outcome_of("done"), outcome_unknown(idempotent=True)])
def test_a_stored_outcome_is_read_back_equal(outcome):
    assert Outcome.decode(outcome.encoded) == outcome


def test_a_frame_answers_the_delivery_that_asks():
    task = task_frame(attempt=2)

    frame = ResultFrame.model_validate_json(outcome_of("done").answer_to(envelope_of(task), "instance-1"))

    assert (frame.task_id, frame.attempt, frame.token) == (task.task_id, 2, task.token)
    assert (frame.instance_id, frame.result.text) == ("instance-1", "done")


@pytest.mark.parametrize(
    "outcome",
    [
        BUSY,
        failure("agent_error", 'a "quoted" 包裹'),
        outcome_of(Reply(text="done", data={"n": 1}, usage={"tokens": 2})),
    ],
)
def test_a_frame_is_what_the_contract_would_write(outcome):
    envelope = envelope_of(task_frame(attempt=2))

    frame = outcome.answer_to(envelope, "instance-1")

    whole = ResultFrame(**envelope.fields(), instance_id="instance-1", **dict(outcome))
    assert frame == whole.model_dump_json().encode()
