"""What an agent's HTTP reply means for the attempt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.channel.http_reply import (
    BUDGET_OVER,
    CUT,
    MAX_PAUSE_S,
    SILENT,
    TOO_SLOW,
    Broken,
    Outcome,
    Reply,
    not_started,
    outcome_of,
    pause_s,
)
from dispatcher.protocol.frames import ResultFrame, ResultStatus
from tests.channel import builders

TASK = builders.TASK.model_copy(update={"attempt": 2, "budget_ms": 1000, "start_within_ms": 1000})


def result(**changes):
    fields = {
        "request_id": "r1",
        "task_id": "t1",
        "attempt": 2,
        "token": TASK.token,
        "instance_id": "i1",
        "status": ResultStatus.SUCCESS,
    }
    return ResultFrame.model_validate(fields | changes).model_dump_json().encode()


def frame_of(reply):
    frame = outcome_of(TASK, reply).frame
    assert frame is not None
    return ResultFrame.model_validate_json(frame)


def test_a_result_frame_is_handed_on_as_it_came():
    assert outcome_of(TASK, Reply(status=200, body=result())).frame == result()


def test_after_202_the_result_comes_later():
    outcome = outcome_of(TASK, Reply(status=202))

    assert (outcome.frame, outcome.pause_s) == (None, 0.0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"ok",
        b"[]",
        b'{"v":1,"type":"result"}',
        result(task_id="t2"),
        result(request_id="r2"),
        result(attempt=1),
        result(token="another-token-of-16"),  # noqa: S106
    ],
)
def test_a_body_that_is_no_result_of_this_attempt_is_an_error_of_the_agent(body):
    frame = frame_of(Reply(status=200, body=body))

    assert (frame.status, frame.error_code, frame.can_retry) == (ResultStatus.ERROR, "http_unreadable", True)


@pytest.mark.parametrize("status", [201, 204, 302, 400, 404, 413, 500, 502, 503, 504])
def test_any_other_status_is_an_error_named_after_it(status):
    frame = frame_of(Reply(status=status))
    can_retry = status in {502, 503, 504}

    assert (frame.status, frame.error_code, frame.can_retry) == (
        ResultStatus.ERROR,
        f"http_{status}",
        can_retry,
    )


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (Reply(status=429), 1),
        (Reply(status=429, retry_after="7"), 7),
        (Reply(status=503, retry_after="0"), 0),
    ],
)
def test_an_agent_without_room_is_busy_and_left_alone_as_long_as_it_asks(reply, seconds):
    assert frame_of(reply).status is ResultStatus.BUSY
    assert outcome_of(TASK, reply).pause_s == seconds


@pytest.mark.parametrize(
    ("status", "retry_after", "seconds"),
    [(ResultStatus.BUSY, "7", 7), (ResultStatus.BUSY, None, 0), (ResultStatus.SUCCESS, "7", 0)],
)
@pytest.mark.parametrize("bound", [False, True])
def test_an_agent_that_says_busy_in_a_result_may_ask_for_a_pause(status, retry_after, seconds, bound):
    reply = Reply(status=200, body=result(status=status), retry_after=retry_after)

    outcome = outcome_of(TASK, reply, bound=bound)

    assert (outcome.frame, outcome.pause_s) == (reply.body, seconds)


@pytest.mark.parametrize("status", [429, 503])
def test_a_refusal_says_nothing_of_a_task_that_may_run_from_an_earlier_sending(status):
    outcome = outcome_of(TASK, Reply(status=status, retry_after="7"), bound=True)

    assert (outcome.frame, outcome.pause_s) == (None, 7)


@pytest.mark.parametrize("reply", [*(Reply(status=status) for status in (502, 503, 504)), CUT, SILENT])
def test_that_one_sending_may_have_run_says_nothing_of_an_earlier_one(reply):
    assert outcome_of(TASK, reply, bound=True) == Outcome()


def test_any_other_reply_is_what_it_is_for_a_task_that_was_sent_before():
    for reply in (Reply(status=200, body=result()), Reply(status=404), TOO_SLOW, BUDGET_OVER):
        assert outcome_of(TASK, reply, bound=True) == outcome_of(TASK, reply)


def test_what_is_written_on_the_agents_behalf_counts_for_this_attempt():
    frame = frame_of(Broken(code="http_cut"))

    assert (frame.request_id, frame.task_id, frame.attempt, frame.token) == ("r1", "t1", 2, TASK.token)
    assert frame.can_retry


@given(st.none() | st.text() | st.integers().map(str))
def test_a_pause_is_never_negative_and_never_long(text):
    assert 0 <= pause_s(text) <= MAX_PAUSE_S


def test_a_pause_until_a_date_is_a_short_one():
    assert pause_s("Wed, 21 Oct 2026 07:28:00 GMT") == 1


def test_what_was_never_reached_surely_did_not_start():
    frame = ResultFrame.model_validate_json(not_started(TASK, "unroutable"))

    assert (frame.status, frame.error_code, frame.token) == (ResultStatus.BUSY, "unroutable", TASK.token)


def test_of_three_timeouts_only_the_total_one_is_not_tried_again():
    assert [frame_of(broken).can_retry for broken in (SILENT, BUDGET_OVER, TOO_SLOW)] == [True, True, False]
