from dispatcher.dispatch.bookkeeper import abandoned_attempts
from dispatcher.dispatch.lifecycle.cancel import cancel
from dispatcher.dispatch.lifecycle.expire import expire
from dispatcher.dispatch.lifecycle.ledger import Change
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestStatus, ResultKind, TaskStatus
from dispatcher.dispatch.lifecycle.settle import settle
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


def test_a_cancelled_request_ends_with_all_that_had_not_ended() -> None:
    state = published(accepted(intent(0), intent(1, QUOTE, links=(link("amount", (0, "amount")),))))

    ended = cancel(state, NOW + 1, assigner()).state

    assert [task.status for task in ended.tasks] == [TaskStatus.CANCELLED] * 2
    assert newest(ended).status is AttemptStatus.ABANDONED
    assert ended.request.status is RequestStatus.CANCELLED
    assert ended.request.answer


def test_parts_that_have_ended_stay_as_they_are() -> None:
    state = published(accepted(intent(0), intent(1)))
    state = settle(state, NOW + 1, result(newest(state)), assigner()).state

    ended = cancel(state, NOW + 2, assigner()).state

    assert [task.status for task in ended.tasks] == [TaskStatus.COMPLETED, TaskStatus.CANCELLED]
    assert ended.request.status is RequestStatus.CANCELLED


def test_cancelling_what_has_ended_changes_nothing() -> None:
    state = published(accepted())
    state = settle(state, NOW + 1, result(newest(state)), assigner()).state

    assert cancel(state, NOW + 2, assigner()).state == state


def test_a_result_that_comes_after_the_cancellation_is_late() -> None:
    state = published(accepted())
    ended = cancel(state, NOW + 1, assigner()).state

    step = settle(ended, NOW + 2, result(newest(state)), assigner())

    assert step.state == ended
    assert [r.kind for r in step.results] == [ResultKind.LATE]
    assert task_of(step.state).status is TaskStatus.CANCELLED


def test_agents_are_told_of_attempts_that_they_may_have() -> None:
    state = published(accepted(intent(0), intent(1)))
    change = Change(before=state, after=cancel(state, NOW + 1, assigner()).state, now_ms=NOW + 1)
    ended = Change(before=change.after, after=change.after, now_ms=NOW + 2)

    assert [a.task_id for a in abandoned_attempts(change)] == [t.task_id for t in state.tasks]
    assert not list(abandoned_attempts(ended))


def test_agents_whose_attempt_lapsed_are_told_as_well() -> None:
    by = assigner(Agents("a1", "a2"))
    lapsed = expire(published(accepted(by=by)), NOW + 15_000, by).state
    change = Change(before=lapsed, after=cancel(lapsed, NOW + 16_000, by).state, now_ms=NOW + 16_000)

    assert [a.agent_id for a in abandoned_attempts(change)] == ["a1", "a2"]
