"""Whatever happens in whatever order: I1 (one end), I3 (one result), I7 (three attempts) hold."""

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.dispatch.lifecycle.expire import expire, not_delivered
from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, RequestStatus, ResultKind
from dispatcher.dispatch.lifecycle.settle import settle
from dispatcher.protocol.frames import ResultStatus
from dispatcher.records import replace
from tests.dispatch.builders import NOW, QUOTE, Agents, accepted, assigner, intent, link, result

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "undelivered", "time", *ResultStatus]),
        st.integers(0, 8),
        st.integers(0, 20_000),
        st.booleans(),
    ),
    max_size=40,
)


def _apply(state: RequestState, event: tuple[str, int, int, bool], now: int, by) -> Step:
    kind, which, _, can_retry = event
    if kind == "time" or not state.attempts:
        return expire(state, now, by)
    attempt = state.attempts[which % len(state.attempts)]
    if kind == "undelivered":
        return not_delivered(state, now, attempt, "unroutable", by)
    if kind == "publish":
        sent = attempt
        if attempt.status is AttemptStatus.DUE:
            lapse_ms = now + attempt.timeout_ms
            sent = replace(attempt, status=AttemptStatus.PUBLISHED, published_ms=now, lapse_ms=lapse_ms)
        return Step(state=replace(state, attempts=tuple(sent if a == attempt else a for a in state.attempts)))
    return settle(state, now, result(attempt, ResultStatus(kind), can_retry=can_retry), by)


@given(events=EVENTS, idempotent=st.booleans())
def test_every_history_keeps_the_invariants(events, idempotent: bool) -> None:
    by = assigner(Agents("a1", "a2", idempotent=idempotent))
    quote = intent(1, QUOTE, links=(link("amount", (0, "amount")),))
    state, now = accepted(intent(0), quote, intent(2), by=by), NOW
    ends = 0
    for event in events:
        now += event[2]
        after = _apply(state, event, now, by)
        ends += _check(state, after)
        state = after.state

    over = expire(state, NOW + 10_000_000, by)
    ends += _check(state, over)

    assert ends == 1
    assert over.state.request.answer
    assert all(not a.status.is_open for a in over.state.attempts)


def _check(before: RequestState, step: Step) -> int:
    after = step.state
    for old, new in zip(before.tasks, after.tasks, strict=True):
        assert not old.status.is_terminal or old == new
        assert len(after.attempts_of(new.task_id)) <= 3
    accepted_results = [r for r in step.results if r.kind is ResultKind.ACCEPTED]
    newly_ended = [
        new
        for old, new in zip(before.tasks, after.tasks, strict=True)
        if new.status.is_terminal and not old.status.is_terminal
    ]
    assert not accepted_results or newly_ended
    if after.request.status is not RequestStatus.OPEN:
        assert all(t.status.is_terminal for t in after.tasks)
    return before.request.status is RequestStatus.OPEN and after.request.status is not RequestStatus.OPEN
