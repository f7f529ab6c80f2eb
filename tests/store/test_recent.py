from dataclasses import replace

import pytest

from dispatcher.dispatch.request import Attempt, AttemptStatus, Request, RequestState, RequestStatus
from dispatcher.identifiers import AgentId, CallerId, ReplicaId, RequestId, TaskId
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


def test_a_state_is_given_out_while_its_due_attempts_are_claimed(recent: RecentStates):
    recent.keep(stored(A, claimed_until_ms=100))

    assert recent.find(A, 99) is not None
    assert recent.find(A, 100) is None
    recent.forget(A)
    assert recent.find(A, 0) is None
