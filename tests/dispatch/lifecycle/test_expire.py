from collections.abc import Mapping

import pytest

from dispatcher.dispatch.lifecycle.assign import AttemptRules
from dispatcher.dispatch.lifecycle.expire import expire, move_on, not_delivered, publish_again, release
from dispatcher.dispatch.lifecycle.request import (
    AttemptStatus,
    RequestState,
    RequestStatus,
    ResultKind,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.identifiers import AgentId, CallerId, ReplicaId
from dispatcher.protocol.frames import ResultStatus
from dispatcher.records import replace
from tests.dispatch.builders import (
    NOW,
    QUOTE,
    Agents,
    AtOnce,
    Loads,
    Spent,
    accepted,
    assigner,
    intent,
    link,
    newest,
    published,
    result,
    task_of,
)


def test_an_undelivered_attempt_goes_to_another_agent() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = accepted(by=by)

    step = not_delivered(state, NOW, newest(state), "unroutable", by)

    assert [a.status for a in step.state.attempts] == [AttemptStatus.NOT_STARTED, AttemptStatus.DUE]
    assert newest(step.state).agent_id == "a2"


def test_a_task_that_no_agent_takes_is_unavailable_after_three_attempts() -> None:
    by = assigner(Agents("a1", "a2", "a3", "a4"))
    state = accepted(by=by)
    for _ in range(3):
        state = not_delivered(state, NOW, newest(state), "refused", by).state

    assert len(state.attempts) == 3
    assert task_of(state).status is TaskStatus.UNAVAILABLE
    assert (task_of(state).error_code, newest(state).error_code) == ("unavailable", "refused")


def test_a_late_report_about_a_published_attempt_changes_nothing() -> None:
    state = published(accepted())

    assert not_delivered(state, NOW, newest(state), "refused", assigner()).state == state


def test_before_its_time_nothing_expires() -> None:
    state = published(accepted())

    assert expire(state, NOW + 14_999, assigner()).state == state


def test_a_lapsed_idempotent_attempt_is_tried_elsewhere_and_its_own_result_still_counts() -> None:
    by = assigner(Agents("a1", "a2"))
    state = published(accepted(by=by))
    first = newest(state)

    lapsed = expire(state, NOW + 15_000, by).state
    ended = settle(lapsed, NOW + 15_100, result(first), by)

    assert lapsed.attempts[0].status is AttemptStatus.LAPSED
    assert newest(lapsed).agent_id == "a2"
    assert task_of(ended.state).status is TaskStatus.COMPLETED
    assert [r.kind for r in ended.results] == [ResultKind.ACCEPTED]


def test_a_task_past_its_deadline_fails_and_later_results_are_late() -> None:
    state = published(accepted(by=assigner(Agents("a1", idempotent=False))))
    first = newest(state)

    ended = expire(state, NOW + 30_000, assigner()).state
    late = settle(ended, NOW + 30_001, result(first), assigner())

    assert task_of(ended).status is TaskStatus.OUTCOME_UNKNOWN
    assert task_of(ended).error_code == "timeout"
    assert newest(ended).status is AttemptStatus.ABANDONED
    assert ended.request.status is RequestStatus.FAILED
    assert [r.kind for r in late.results] == [ResultKind.LATE]
    assert late.state == ended


def test_work_that_was_never_published_is_unavailable_at_its_deadline() -> None:
    state = accepted(by=assigner(loads=Loads(room=0)))

    ended = expire(state, NOW + 30_000, assigner()).state

    assert task_of(ended).status is TaskStatus.UNAVAILABLE
    assert task_of(ended).error_code == "no_capacity"


def test_the_requests_deadline_ends_everything_left() -> None:
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),))
    state = published(accepted(intent(0), quote))
    state = replace(state, request=replace(state.request, deadline_ms=NOW + 10))

    ended = expire(state, NOW + 10, assigner()).state

    assert [t.status for t in ended.tasks] == [TaskStatus.FAILED, TaskStatus.SKIPPED]
    assert ended.request.status is RequestStatus.FAILED


def test_no_attempt_is_made_after_the_deadline() -> None:
    by = assigner(Agents("a1"))
    state = published(accepted(by=by))
    state = replace(state, tasks=(replace(task_of(state), deadline_ms=NOW + 15_050),))

    lapsed = expire(state, NOW + 15_000, by).state

    assert len(lapsed.attempts) == 1
    assert task_of(lapsed).status is TaskStatus.OPEN


def _reclaimed(state: RequestState) -> RequestState:
    """The same, after a claim ran out: the attempt may have been sent."""
    maybe_sent = replace(newest(state), published_ms=NOW)
    return replace(state, attempts=(maybe_sent,))


def test_after_a_lost_confirmation_a_refusal_does_not_start_the_task_elsewhere() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = _reclaimed(accepted(by=by))

    step = not_delivered(state, NOW, newest(state), "refused", by)

    assert step.state == state


def test_after_a_lost_confirmation_an_idempotent_task_may_run_elsewhere() -> None:
    by = assigner(Agents("a1", "a2"))
    state = _reclaimed(accepted(by=by))

    step = not_delivered(state, NOW, newest(state), "refused", by)

    assert [a.status for a in step.state.attempts] == [AttemptStatus.LAPSED, AttemptStatus.DUE]


def test_a_replica_whose_claim_is_over_can_say_nothing_about_the_attempt() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = accepted(by=by)

    assert not_delivered(state, NOW + 10_000, newest(state), "refused", by).state == state
    assert not_delivered(state, NOW, replace(newest(state), number=7), "refused", by).state == state


def test_an_agent_that_may_not_run_it_twice_is_no_second_choice() -> None:
    class Mixed(Agents):
        def __call__(self, request, intent, task, tried, inputs=None):
            made = super().__call__(request, intent, task, tried)
            return replace(made, idempotent=made.decision.agent_id == "a1")

    by = assigner(Mixed("a1", "a2"))
    state = published(accepted(by=by))
    maybe_sent = _reclaimed(accepted(by=by))

    lapsed = expire(state, NOW + 15_000, by).state
    kept = move_on(maybe_sent, NOW, newest(maybe_sent), by).state

    assert [a.agent_id for a in lapsed.attempts] == ["a1"]
    assert [a.agent_id for a in kept.attempts] == ["a1"]
    assert task_of(lapsed).status is TaskStatus.OPEN


def test_work_that_waits_for_a_gone_agent_moves_to_another() -> None:
    by = assigner(Agents("a1", "a2", idempotent=False))
    state = accepted(by=by)

    step = move_on(state, NOW, newest(state), by)

    assert [a.agent_id for a in step.state.attempts] == ["a1", "a2"]
    assert step.state.attempts[0].error_code == "agent_gone"


def test_work_of_a_gone_agent_that_may_run_moves_only_if_it_may_run_twice() -> None:
    by = assigner(Agents("a1", "a2"))
    state = _reclaimed(accepted(by=by))

    step = move_on(state, NOW, newest(state), by)

    assert [a.status for a in step.state.attempts] == [AttemptStatus.LAPSED, AttemptStatus.DUE]
    assert newest(step.state).agent_id == "a2"


@pytest.mark.parametrize("sent", [True, False])
def test_work_that_nobody_else_can_take_or_that_may_run_waits_unclaimed(sent: bool) -> None:
    by = assigner(Agents("a1", "a2", idempotent=False) if sent else Agents("a1"))
    state = _reclaimed(accepted(by=by)) if sent else accepted(by=by)

    after = move_on(state, NOW, newest(state), by).state

    assert len(after.attempts) == 1
    assert newest(after).status is AttemptStatus.DUE
    assert newest(after).claimed_by is None
    assert move_on(after, NOW, newest(after), by).state == after


def test_work_at_its_third_attempt_does_not_move() -> None:
    rules = AttemptRules(max_attempts=1)
    by = assigner(Agents("a1", "a2"), rules=rules)
    state = accepted(by=by)

    assert len(move_on(state, NOW, newest(state), by).state.attempts) == 1


def test_what_the_broker_lost_is_due_again_under_the_same_token() -> None:
    state = published(accepted())

    again = publish_again(state, NOW, newest(state)).state

    assert newest(again).status is AttemptStatus.DUE
    assert newest(again).token == newest(state).token
    assert publish_again(again, NOW, newest(again)).state == again


def test_an_idempotent_attempt_that_nobody_can_follow_now_is_followed_once_somebody_is_there() -> None:
    agents = Agents("a1")
    by = assigner(agents)
    state = published(accepted(by=by))
    agents.agents = []

    waiting = expire(state, NOW + 15_000, by).state
    agents.agents = ["a2"]
    too_soon = expire(waiting, NOW + 15_500, by).state
    followed = expire(waiting, NOW + 16_000, by).state

    assert newest(waiting).status is AttemptStatus.PUBLISHED
    assert too_soon == waiting
    assert [a.status for a in followed.attempts] == [AttemptStatus.LAPSED, AttemptStatus.DUE]
    assert newest(followed).agent_id == "a2"


class Later(AtOnce):
    """A retry budget that makes wait."""

    def delay_ms(self, caller: CallerId, agent_id: AgentId, within_ms: int) -> int:
        return 4_000


def test_what_the_retry_budget_forbids_is_not_tried_again() -> None:
    by = assigner(retries=Spent())
    state = published(accepted(by=by))

    assert len(expire(state, NOW + 15_000, by).state.attempts) == 1


def test_what_the_retry_budget_delays_waits_in_the_outbox() -> None:
    by = assigner(retries=Later())
    state = published(accepted(by=by))

    again = newest(expire(state, NOW + 15_000, by).state)

    assert (again.agent_id, again.not_before_ms) == ("a2", NOW + 19_000)
    assert again.claimed_by is None


def test_what_was_not_sent_in_time_is_free_again_and_surely_not_started() -> None:
    state = accepted()

    in_time, late = (
        newest(release(state, NOW + after_ms, newest(state), assigner().replica).state)
        for after_ms in (1, 20_000)
    )

    assert (in_time.claimed_by, in_time.claimed_until_ms, in_time.published_ms) == (None, None, None)
    assert late == in_time


@pytest.mark.parametrize(
    "since",
    [
        {"claimed_by": ReplicaId("r2")},
        {"claimed_until_ms": NOW + 30_000},
        {"status": AttemptStatus.PUBLISHED},
    ],
    ids=["by another", "by itself", "published"],
)
def test_a_claim_that_was_made_since_is_not_given_back(since: Mapping[str, object]) -> None:
    state = accepted()
    changed = replace(newest(state), **since)  # type: ignore[arg-type]
    claimed_since = replace(state, attempts=(changed,))

    assert release(claimed_since, NOW + 1, newest(state), assigner().replica).state == claimed_since


def test_what_a_dead_replica_claimed_may_have_run_at_its_deadline() -> None:
    """It may have sent it and died before noting that: who asked must not be told to simply try again."""
    by = assigner(Agents("a1", idempotent=False))
    state = accepted(by=by)
    given_back = release(state, NOW + 1, newest(state), by.replica).state

    maybe_sent, never_sent = (expire(one, NOW + 30_000, by).state for one in (state, given_back))

    assert (task_of(maybe_sent).status, task_of(maybe_sent).error_code) == (
        TaskStatus.OUTCOME_UNKNOWN,
        "timeout",
    )
    assert (task_of(never_sent).status, task_of(never_sent).error_code) == (
        TaskStatus.UNAVAILABLE,
        "no_capacity",
    )


def test_what_surely_did_not_start_and_waits_again_did_not_run_at_its_deadline() -> None:
    by = assigner(Agents("a1", idempotent=False))
    sent = published(accepted(by=by))
    waiting = settle(sent, NOW + 1, result(newest(sent), ResultStatus.BUSY), by).state

    ended = expire(waiting, NOW + 30_000, by).state

    assert [a.status for a in ended.attempts] == [AttemptStatus.NOT_STARTED, AttemptStatus.ABANDONED]
    assert task_of(ended).status is TaskStatus.UNAVAILABLE


def test_the_last_moment_is_not_spent_on_waiting_for_the_same_agent() -> None:
    by = assigner(Agents("a1"))
    state = published(accepted(by=by))
    attempt = replace(newest(state), lapse_ms=NOW + 29_950)
    late = replace(state, attempts=(attempt,))

    assert len(expire(late, NOW + 29_950, by).state.attempts) == 1
