"""The rule of what a delivery may do (I2)."""

import pytest

from dispatcher.sdk.inbox import Claim, Record, Verdict, judge, serial_of
from tests.sdk.stub_link import task_frame

NOW = 100.0


def claim(*, owner="me", attempt=1, idempotent=False, may_start=True, refusal=None) -> Claim:
    return Claim(
        key="k",
        owner=owner,
        attempt=attempt,
        idempotent=idempotent,
        hold_s=30.0,
        may_start=may_start,
        refusal=refusal,
    )


def running(*, owner="me", expires_at=NOW + 1) -> Record:
    return Record(owner=owner, attempt=1, expires_at=expires_at)


def finished(*, attempt=1, retryable=False) -> Record:
    return Record(owner="me", attempt=attempt, expires_at=NOW, outcome=b"done", retryable=retryable)


def test_a_new_task_may_run():
    assert judge(None, claim(), NOW).verdict is Verdict.RUN


def test_a_new_task_that_may_not_start_is_not_started():
    assert judge(None, claim(may_start=False), NOW).verdict is Verdict.NOT_STARTED


@pytest.mark.parametrize("attempt", [1, 2, 3])
@pytest.mark.parametrize("may_start", [True, False])
def test_a_finished_task_is_replayed_to_every_attempt(attempt, may_start):
    judgement = judge(finished(), claim(attempt=attempt, may_start=may_start), NOW)

    assert (judgement.verdict, judgement.outcome) == (Verdict.REPLAY, b"done")


def test_a_failure_that_may_be_retried_is_replayed_to_its_own_attempt():
    assert judge(finished(attempt=2, retryable=True), claim(attempt=2), NOW).verdict is Verdict.REPLAY


def test_a_failure_that_may_be_retried_gives_way_to_a_later_attempt():
    assert judge(finished(attempt=1, retryable=True), claim(attempt=2), NOW).verdict is Verdict.RUN


def test_a_late_redelivery_of_an_earlier_attempt_is_told_the_stored_failure():
    assert judge(finished(attempt=2, retryable=True), claim(attempt=1), NOW).verdict is Verdict.REPLAY


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_task_that_another_process_runs_waits_for_it(idempotent):
    judgement = judge(running(owner="other"), claim(idempotent=idempotent, may_start=False), NOW)

    assert judgement.verdict is Verdict.ELSEWHERE


@pytest.mark.parametrize("left_behind", [running(owner="other", expires_at=NOW), running(owner="me")])
def test_an_interrupted_run_is_repeated_only_if_idempotent(left_behind):
    assert judge(left_behind, claim(idempotent=True), NOW).verdict is Verdict.RUN
    assert judge(left_behind, claim(idempotent=False), NOW).verdict is Verdict.UNKNOWN


def test_only_what_runs_or_is_declined_with_a_refusal_is_written():
    assert judge(None, claim(), NOW).record == Record(owner="me", attempt=1, expires_at=NOW + 30.0)
    assert judge(None, claim(may_start=False), NOW).record is None
    declined = judge(None, claim(may_start=False, refusal=b"busy"), NOW).record
    assert declined == Record(owner="me", attempt=1, expires_at=NOW + 30.0, outcome=b"busy", retryable=True)


@pytest.mark.parametrize("record", [finished(), running(owner="other"), running(owner="me")])
def test_a_refusal_never_takes_the_place_of_a_run(record):
    assert judge(record, claim(attempt=2, may_start=False, refusal=b"busy"), NOW).record is None


def test_attempts_of_a_repetition_come_after_all_of_the_one_before():
    frames = [task_frame(repeat=repeat, attempt=attempt) for repeat in (0, 1) for attempt in (1, 2, 3)]

    assert [serial_of(frame) for frame in frames] == [1, 2, 3, 4, 5, 6]
