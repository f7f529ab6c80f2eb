"""The fence alone: what opens and closes it, and who waits for that."""

import asyncio

from dispatcher.sdk.fence import Fence
from tests.sdk.stub_link import WAIT_S

HOLDS_S = 45.0


class HandClock:
    """Time that moves only when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a fence does not sleep")


def test_who_needs_no_lease_is_behind_no_fence():
    assert Fence(HandClock()).is_open


def test_a_lease_is_good_for_its_time_since_it_was_asked_about_and_no_longer():
    clock = HandClock()
    fence = Fence(clock)

    fence.confirm(clock.now - 5.0, HOLDS_S)
    clock.now += HOLDS_S - 5.1
    was_open = fence.is_open
    clock.now += 0.1

    assert (was_open, fence.is_open) == (True, False)


def test_an_answer_to_a_question_from_before_the_stop_opens_nothing():
    clock = HandClock()
    fence = Fence(clock)

    fence.confirm(clock.now - HOLDS_S, HOLDS_S)

    assert not fence.is_open


async def test_whoever_waits_is_let_through_by_the_next_confirmation():
    clock = HandClock()
    fence = Fence(clock)
    fence.confirm(clock.now - HOLDS_S, HOLDS_S)
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(fence.opens(clock.now + WAIT_S))
        await fence.wanted(WAIT_S)

        fence.confirm(clock.now, HOLDS_S)

    assert waiting.result()


async def test_whoever_waits_hears_at_once_that_the_lease_is_lost():
    clock = HandClock()
    fence = Fence(clock)
    fence.confirm(clock.now - HOLDS_S, HOLDS_S)
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(fence.opens(clock.now + 2 * WAIT_S))
        await fence.wanted(WAIT_S)

        fence.lose()

    assert (waiting.result(), fence.is_open, fence.is_lost) == (False, False, True)


async def test_nobody_waits_longer_than_said():
    clock = HandClock()
    fence = Fence(clock)
    fence.confirm(clock.now - HOLDS_S, HOLDS_S)

    assert not await fence.opens(clock.now)


async def test_a_new_lease_opens_it_again():
    clock = HandClock()
    fence = Fence(clock)
    fence.lose()

    fence.confirm(clock.now, HOLDS_S)

    assert await fence.opens(clock.now)
    assert not fence.is_lost
