"""Waiting for a request that this replica is about to accept: no look into the ledger without need."""

import asyncio

import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.lifecycle.request import RequestState, RequestStatus
from dispatcher.dispatch.waiters import EXPECTED, HELD_BYTES, Waiters
from dispatcher.identifiers import RequestId
from dispatcher.records import replace
from tests.dispatch.builders import accepted, intent

LIMIT_S = 5


class OneRequest:
    """A ledger of one request that counts the looks."""

    def __init__(self, state: RequestState) -> None:
        self.state = state
        self.looks = 0

    async def read(self, request_id: RequestId) -> RequestState | None:
        self.looks += 1
        return self.state if request_id == self.state.request.request_id else None


def ended(state: RequestState) -> RequestState:
    return replace(state, request=replace(state.request, status=RequestStatus.COMPLETED, answer="done"))


@pytest.fixture
def ledger() -> OneRequest:
    return OneRequest(accepted(intent(0)))


@pytest.fixture
def waiters(ledger: OneRequest) -> Waiters:
    return Waiters(ledger=ledger, clock=SystemClock(), limit=10)  # type: ignore[arg-type]


async def test_an_end_between_accept_and_wait_is_kept_for_the_wait(ledger: OneRequest, waiters: Waiters):
    request_id = ledger.state.request.request_id
    waiters.expect(request_id)
    waiters.notify(ended(ledger.state))

    state = await waiters.wait(request_id, 30)

    assert state.request.status is RequestStatus.COMPLETED
    assert ledger.looks == 0


async def test_who_waits_for_an_expected_request_is_told_of_its_end(ledger: OneRequest, waiters: Waiters):
    request_id = ledger.state.request.request_id
    waiters.expect(request_id)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(waiters.wait(request_id, 30))
        await asyncio.wait([waiting], timeout=0)
        waiters.notify(ended(ledger.state))

    assert waiting.result().request.answer == "done"
    assert ledger.looks == 0


async def test_a_wake_up_before_the_wait_makes_it_look_at_once(ledger: OneRequest, waiters: Waiters):
    request_id = ledger.state.request.request_id
    waiters.expect(request_id)
    waiters.wake(request_id)
    ledger.state = ended(ledger.state)

    state = await waiters.wait(request_id, 30)

    assert state.request.status is RequestStatus.COMPLETED
    assert ledger.looks == 1


async def test_who_does_not_wait_at_all_gets_the_state_as_it_stands(ledger: OneRequest, waiters: Waiters):
    request_id = ledger.state.request.request_id
    waiters.expect(request_id)

    state = await waiters.wait(request_id, 0)

    assert state.request.status is RequestStatus.OPEN
    assert ledger.looks == 1


async def test_a_request_that_was_expected_too_long_ago_is_looked_for(ledger: OneRequest, waiters: Waiters):
    request_id = ledger.state.request.request_id
    waiters.expect(request_id)
    for number in range(EXPECTED):
        waiters.expect(RequestId(str(number)))
    waiters.notify(ended(ledger.state))
    ledger.state = ended(ledger.state)

    await waiters.wait(request_id, 30)

    assert ledger.looks == 1


async def test_states_that_nobody_collects_take_bounded_memory(waiters: Waiters):
    state = ended(accepted(intent(0)))
    (task,) = state.tasks
    large = replace(state, tasks=(replace(task, result_text="x" * 900_000),))

    for number in range(EXPECTED):
        request_id = RequestId(str(number))
        waiters.expect(request_id)
        waiters.notify(replace(large, request=replace(large.request, request_id=request_id)))

    assert 0 < waiters.held_bytes <= HELD_BYTES


async def test_a_state_without_room_is_read_at_the_wait(ledger: OneRequest, waiters: Waiters):
    state = ended(ledger.state)
    (task,) = state.tasks
    ledger.state = replace(state, tasks=(replace(task, result_text="x" * HELD_BYTES),))
    waiters.expect(state.request.request_id)
    waiters.notify(ledger.state)

    found = await waiters.wait(state.request.request_id, 30)

    assert found == ledger.state
    assert ledger.looks == 1
    assert waiters.held_bytes == 0
