import pytest

from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, Request, RequestState, RequestStatus
from dispatcher.identifiers import AgentId, CallerId, ReplicaId, RequestId, TaskId
from dispatcher.records import replace
from dispatcher.store.recent import RecentStates, Stored

A, B, C = (RequestId(name) for name in "abc")


def stored(request_id: RequestId, version: int = 0, *, claimed_until_ms: int | None = None) -> Stored:
    request = Request(
        request_id=request_id,
        caller=CallerId("shop"),
        replica=ReplicaId("r1"),
        message="hello",
        language="en",
        environment="production",
        session_id=None,
        user_id=None,
        context={},
        idempotency_key=None,
        body_digest="",
        status=RequestStatus.OPEN,
        answer=None,
        created_ms=0,
        deadline_ms=10,
    )
    due = Attempt(
        task_id=TaskId("t"),
        request_id=request_id,
        number=1,
        agent_id=AgentId("agent"),
        token=f"token-{request_id}",
        status=AttemptStatus.DUE,
        not_before_ms=0,
        timeout_ms=5,
        claimed_until_ms=claimed_until_ms,
    )
    attempts = () if claimed_until_ms is None else (due,)
    return Stored(RequestState(request=request, intents=(), tasks=(), attempts=attempts), version)


@pytest.fixture
def recent() -> RecentStates:
    return RecentStates(limit=2)


def test_the_request_used_longest_ago_gives_way(recent: RecentStates):
    for one in (stored(A), stored(B), stored(A, 1), stored(C)):
        recent.keep(one)

    assert [recent.knows(one) for one in (A, B, C)] == [True, False, True]
    assert len(recent) == 2


def test_an_older_state_does_not_replace_a_newer_one(recent: RecentStates):
    recent.keep(stored(A, 2))
    recent.keep(stored(A, 1))

    found = recent.find(A, 0)
    assert found is not None
    assert found.version == 2


def test_a_request_that_has_ended_is_forgotten(recent: RecentStates):
    recent.keep(stored(A))
    ended = stored(A, 1)
    request = replace(ended.state.request, status=RequestStatus.COMPLETED)
    recent.keep(Stored(replace(ended.state, request=request), 1))

    assert not recent.knows(A)
    assert recent.has_ended(A)


def test_of_the_requests_that_ended_the_last_are_known(recent: RecentStates):
    for one in (A, B, C):
        open_one = stored(one).state
        ended = replace(open_one, request=replace(open_one.request, status=RequestStatus.FAILED))
        recent.keep(Stored(ended, 1))

    assert [recent.has_ended(one) for one in (A, B, C)] == [False, True, True]
    recent.clear()
    assert not recent.has_ended(C)


def test_a_state_is_given_out_while_its_due_attempts_are_claimed(recent: RecentStates):
    recent.keep(stored(A, claimed_until_ms=100))

    assert recent.find(A, 99) is not None
    assert recent.find(A, 100) is None
    recent.forget(A)
    assert recent.find(A, 0) is None


def test_all_together_take_no_more_than_their_bytes():
    recent = RecentStates(limit=2048, max_bytes=1_000_000)

    for number in range(200):
        one = stored(RequestId(str(number)))
        request = replace(one.state.request, context={"text": "x" * 65_000, "list": ["y" * 1_000]})
        recent.keep(Stored(replace(one.state, request=request), 0))

    assert 500_000 < recent.size_bytes <= 1_000_000
    assert recent.knows(RequestId("199"))
    assert not recent.knows(RequestId("0"))


def test_what_alone_is_too_large_is_not_kept():
    recent = RecentStates(limit=10, max_bytes=10_000)
    one = stored(A)

    recent.keep(Stored(replace(one.state, request=replace(one.state.request, message="x" * 20_000)), 0))

    assert not recent.knows(A)
    assert recent.size_bytes == 0


def test_nothing_is_left_after_clearing(recent: RecentStates):
    recent.keep(stored(A))

    recent.clear()

    assert not recent.knows(A)
    assert recent.size_bytes == 0


def test_with_a_limit_of_none_nothing_is_kept():
    recent = RecentStates(limit=0)

    recent.keep(stored(A))

    assert len(recent) == 0
