from dataclasses import replace

from dispatcher.dispatch.expire import expire, not_delivered
from dispatcher.dispatch.request import AttemptStatus, RequestStatus, ResultKind, TaskStatus
from dispatcher.dispatch.settle import settle
from tests.dispatch.builders import (
    NOW,
    QUOTE,
    Agents,
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
    assert task_of(state).error_code == "refused"


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

    assert task_of(ended).status is TaskStatus.FAILED
    assert task_of(ended).error_code == "timeout"
    assert newest(ended).status is AttemptStatus.ABANDONED
    assert ended.request.status is RequestStatus.FAILED
    assert [r.kind for r in late.results] == [ResultKind.LATE]
    assert late.state == ended


def test_work_that_was_never_published_is_unavailable_at_its_deadline() -> None:
    state = accepted(by=assigner(has_room=lambda _: False))

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
