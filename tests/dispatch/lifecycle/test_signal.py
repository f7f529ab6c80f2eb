import pytest

from dispatcher.dispatch.lifecycle.assign import Assigner, Assignment, AttemptRules
from dispatcher.dispatch.lifecycle.expire import expire
from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, RequestState, TaskStatus
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.dispatch.lifecycle.signal import MAX_PARTIALS, note
from dispatcher.dispatch.lifecycle.task_frame import due_of, task_frame
from dispatcher.protocol.frames import (
    PartialFrame,
    ProgressFrame,
    RenewFrame,
    ResultBody,
    SignalFrame,
    StartedFrame,
)
from dispatcher.records import replace
from tests.dispatch.builders import NOW, Agents, accepted, assigner, newest, published, result, task_of

HOUR_MS = 3_600_000
RULES = AttemptRules(lease_ms=15_000, attempt_timeout_ms=10_000, long_after_ms=60_000)


class Slow(Agents):
    """Agents whose capability may take an hour."""

    leases = True

    def __call__(self, *given: object) -> Assignment:
        return replace(super().__call__(*given), timeout_ms=HOUR_MS, leases=self.leases)  # type: ignore[arg-type]


def slow(*agents: str, idempotent: bool = True) -> Assigner:
    return assigner(Slow(*agents, idempotent=idempotent), rules=RULES)


def frame(kind: type[SignalFrame], attempt: Attempt, **fields: object) -> SignalFrame:
    return kind.model_validate(
        {
            "request_id": attempt.request_id,
            "task_id": attempt.task_id,
            "attempt": attempt.number,
            "token": attempt.token,
            "instance_id": "i1",
            **fields,
        }
    )


def started(state: RequestState, at: int = NOW) -> RequestState:
    return note(state, at, frame(StartedFrame, newest(state))).state


def test_a_long_task_has_a_lease_and_its_request_the_time_it_needs() -> None:
    state = accepted(by=slow("a1"))

    sent = task_frame(due_of(state, newest(state), NOW), "results")

    assert newest(state).lease_ms == sent.lease_ms == 15_000
    assert state.request.deadline_ms == NOW + HOUR_MS
    assert (sent.budget_ms, sent.start_within_ms) == (HOUR_MS, 10_000)


def test_an_agent_that_knows_no_leases_keeps_a_long_task_for_all_its_time() -> None:
    agents = Slow("a1")
    agents.leases = False

    state = published(accepted(by=assigner(agents, rules=RULES)))

    assert newest(state).lease_ms is None
    assert newest(state).timeout_ms == HOUR_MS
    assert newest(started(state)).lapse_ms == NOW + HOUR_MS


def test_a_short_task_has_no_lease() -> None:
    state = accepted()

    assert newest(state).lease_ms is None
    assert task_frame(due_of(state, newest(state), NOW), "results").lease_ms is None


def test_the_lease_runs_from_the_start_and_from_each_renewal() -> None:
    state = started(published(accepted(by=slow("a1"))), NOW + 5_000)
    renewed = note(state, NOW + 18_000, frame(RenewFrame, newest(state))).state

    assert newest(state).started_ms == NOW + 5_000
    assert newest(state).lapse_ms == NOW + 20_000
    assert newest(renewed).lapse_ms == NOW + 33_000
    assert newest(expire(renewed, NOW + 20_000, slow("a1")).state).status is AttemptStatus.PUBLISHED


def test_a_lease_that_is_not_renewed_ends_and_another_agent_takes_over() -> None:
    by = slow("a1", "a2")
    state = started(published(accepted(by=by)))

    lapsed = expire(state, NOW + 15_000, by).state

    assert [a.status for a in lapsed.attempts] == [AttemptStatus.LAPSED, AttemptStatus.DUE]
    assert newest(lapsed).agent_id == "a2"


def test_what_must_not_run_twice_has_one_more_attempts_time_to_report() -> None:
    by = slow("a1", "a2", idempotent=False)
    state = started(published(accepted(by=by)))
    first = newest(state)

    lapsed = expire(state, NOW + 15_000, by).state
    told = settle(lapsed, NOW + 20_000, result(first), by).state
    silent = expire(lapsed, NOW + 25_000, by).state

    assert len(lapsed.attempts) == 1
    assert task_of(told).status is TaskStatus.COMPLETED
    assert task_of(silent).status is TaskStatus.OUTCOME_UNKNOWN


def test_signals_of_an_agent_that_woke_up_count_no_more_but_its_result_does() -> None:
    by = slow("a1", "a2")
    state = started(published(accepted(by=by)))
    old = newest(state)
    moved = expire(state, NOW + 15_000, by).state

    for late in (
        frame(StartedFrame, old),
        frame(RenewFrame, old),
        frame(ProgressFrame, old, fraction=0.5),
        frame(PartialFrame, old, sequence=0, result=ResultBody(text="a")),
    ):
        step = note(moved, NOW + 16_000, late)
        assert (step.state, step.partials) == (moved, ())
    assert task_of(settle(moved, NOW + 16_000, result(old), by).state).status is TaskStatus.COMPLETED


@pytest.mark.parametrize(("field", "value"), [("token", "x" * 20), ("task_id", "other"), ("attempt", 2)])
def test_a_signal_that_does_not_fit_its_attempt_changes_nothing(field: str, value: object) -> None:
    state = published(accepted(by=slow("a1")))
    wrong = frame(StartedFrame, newest(state)).model_copy(update={field: value})

    assert note(state, NOW, wrong).state == state


def test_a_start_that_is_told_before_the_publish_was_noted_counts() -> None:
    state = started(accepted(by=slow("a1")), NOW + 3)

    assert newest(state).status is AttemptStatus.PUBLISHED
    assert newest(state).published_ms == NOW + 3


def test_a_short_attempts_time_is_not_moved_by_signals() -> None:
    state = published(accepted())
    lapse_ms = newest(state).lapse_ms

    for kind in (StartedFrame, RenewFrame):
        assert newest(note(state, NOW + 9, frame(kind, newest(state))).state).lapse_ms == lapse_ms


def test_progress_is_kept_with_the_attempt() -> None:
    state = published(accepted())

    after = note(state, NOW, frame(ProgressFrame, newest(state), fraction=0.25, note="a quarter")).state

    assert newest(after).progress == {"fraction": 0.25, "note": "a quarter"}


def test_pieces_are_kept_up_to_a_bound() -> None:
    state = published(accepted())

    def piece(sequence: int) -> SignalFrame:
        return frame(PartialFrame, newest(state), sequence=sequence, result=ResultBody(text="a"))

    kept = note(state, NOW, piece(MAX_PARTIALS - 1))
    dropped = note(state, NOW, piece(MAX_PARTIALS))

    assert [(p.attempt, p.sequence, p.document) for p in kept.partials] == [
        (1, MAX_PARTIALS - 1, '{"text":"a","data":{}}')
    ]
    assert dropped.partials == ()


@pytest.mark.parametrize("kind", [StartedFrame, RenewFrame])
def test_a_lease_that_lapsed_unheard_is_taken_up_again(kind: type[SignalFrame]) -> None:
    by = slow("a1", idempotent=False)
    state = started(published(accepted(by=by)))
    lapsed = expire(state, NOW + 16_000, by).state

    again = note(lapsed, NOW + 20_000, frame(kind, newest(lapsed))).state

    assert newest(lapsed).status is AttemptStatus.LAPSED
    assert newest(again).status is AttemptStatus.PUBLISHED
    assert newest(again).lapse_ms == NOW + 35_000
    assert task_of(again).deadline_ms == NOW + HOUR_MS


def test_what_lapsed_without_a_lease_stays_so() -> None:
    by = assigner(Agents("a1", idempotent=False))
    state = expire(published(accepted(by=by)), NOW + 29_999, by).state
    attempts = tuple(replace(a, status=AttemptStatus.LAPSED) for a in state.attempts)
    lapsed = replace(state, attempts=attempts)

    assert note(lapsed, NOW + 29_999, frame(StartedFrame, newest(lapsed))).state == lapsed


def test_progress_and_pieces_of_a_lapsed_attempt_change_nothing() -> None:
    by = slow("a1", idempotent=False)
    lapsed = expire(started(published(accepted(by=by))), NOW + 16_000, by).state

    for late in (
        frame(ProgressFrame, newest(lapsed), fraction=0.5),
        frame(PartialFrame, newest(lapsed), sequence=0, result=ResultBody(text="a")),
    ):
        step = note(lapsed, NOW + 17_000, late)
        assert (step.state, step.partials) == (lapsed, ())


def test_while_renewals_cannot_be_heard_no_lease_lapses() -> None:
    by = slow("a1", "a2")
    state = started(published(accepted(by=by)))

    held = expire(state, NOW + 16_000, by, hold_leases=True).state

    assert held == state
    assert len(expire(held, NOW + 16_000, by).state.attempts) == 2
