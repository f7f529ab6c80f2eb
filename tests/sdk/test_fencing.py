"""Tasks of an instance that may have lost its lease: nothing starts, and nothing is said of them (I2)."""

import asyncio

import pytest

from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.fence import Fence
from dispatcher.sdk.inbox import Claim, Judgement
from dispatcher.sdk.memory_inbox import MemoryInbox
from tests.sdk.stub_link import WAIT_S, StubDelivery, StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of

HOLDS_S = 45.0


def closed_fence() -> Fence:
    """As of a process that was stopped for as long as its lease was good."""
    fence = Fence()
    fence.confirm(SystemClock().monotonic() - HOLDS_S, HOLDS_S)
    return fence


async def test_a_task_waits_for_the_lease_to_be_confirmed_and_runs():
    work, link, fence = Work(), StubLink(), closed_fence()
    async with intake_of(work, link, fence=fence) as intake, asyncio.TaskGroup() as group:
        settled = group.create_task(handled(intake, task_frame()))
        await fence.wanted(WAIT_S)
        ran_before = len(work.runs)

        fence.confirm(SystemClock().monotonic(), HOLDS_S)

    assert (ran_before, len(work.runs)) == (0, 1)
    assert await settled.result().settlement() is Settlement.ACK


async def test_two_copies_that_waited_run_once_and_are_told_the_same():
    work, link, fence = Work(), StubLink(), closed_fence()
    async with intake_of(work, link, fence=fence) as intake, asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(handled(intake, task_frame("work.once")))
        await fence.wanted(WAIT_S)

        fence.confirm(SystemClock().monotonic(), HOLDS_S)

    assert len(work.runs) == 1
    assert [(await link.result()).result.text for _ in range(2)] == ["run 1", "run 1"]


async def test_a_task_of_a_lost_lease_is_given_back_without_a_word():
    work, link, fence = Work(), StubLink(), closed_fence()
    async with intake_of(work, link, fence=fence) as intake, asyncio.TaskGroup() as group:
        settled = group.create_task(handled(intake, task_frame(budget_ms=60_000)))
        await fence.wanted(WAIT_S)

        fence.lose()

    assert await settled.result().settlement() is Settlement.REQUEUE
    assert (work.runs, link.reports) == ([], [])


@pytest.mark.parametrize("lease_ms", [None, 60_000])
async def test_a_lease_that_nobody_confirms_is_waited_for_as_long_as_the_task_has_time(lease_ms):
    work, link = Work(), StubLink()
    async with intake_of(work, link, fence=closed_fence()) as intake:
        delivery = await handled(intake, task_frame(budget_ms=20, lease_ms=lease_ms))

    assert await delivery.settlement() is Settlement.REQUEUE
    assert (work.runs, link.reports) == ([], [])


async def test_a_lost_delivery_is_not_waited_for():
    work, fence = Work(), closed_fence()
    delivery = StubDelivery(task_frame(budget_ms=60_000).model_dump_json().encode())
    async with intake_of(work, StubLink(), fence=fence) as intake, asyncio.TaskGroup() as group:
        group.create_task(intake.handle(delivery))
        await fence.wanted(WAIT_S)

        delivery.is_lost = True

    assert (await delivery.settlement(), work.runs) == (Settlement.REQUEUE, [])


async def test_a_drain_does_not_wait_for_the_lease():
    work, fence = Work(), closed_fence()
    async with intake_of(work, StubLink(), fence=fence) as intake, asyncio.TaskGroup() as group:
        settled = group.create_task(handled(intake, task_frame(budget_ms=60_000)))
        await fence.wanted(WAIT_S)

        intake.drain()
        await intake.idle()

    assert await settled.result().settlement() is Settlement.REQUEUE


class Stopped(MemoryInbox):
    """The process is stopped while it waits for the claim, and goes on too late."""

    def __init__(self, fence: Fence) -> None:
        super().__init__()
        self._fence = fence
        self.claims = 0

    async def claim(self, claim: Claim) -> Judgement:
        judgement = await super().claim(claim)
        self.claims += 1
        self._fence.confirm(SystemClock().monotonic() - HOLDS_S, HOLDS_S)
        return judgement


async def test_a_process_that_was_stopped_between_claim_and_start_starts_nothing():
    work, link, fence = Work(), StubLink(), Fence()
    async with intake_of(work, link, Stopped(fence), fence=fence) as intake:
        delivery = await handled(intake, task_frame("work.once"))

    assert await delivery.settlement() is Settlement.REQUEUE
    assert (work.runs, link.reports) == ([], [])


async def test_a_process_that_was_stopped_does_not_say_that_a_task_came_too_late():
    work, link, fence = Work(), StubLink(), Fence()
    inbox = Stopped(fence)
    async with intake_of(work, link, inbox, fence=fence) as intake:
        delivery = await handled(intake, task_frame("work.once", start_within_ms=0))

    assert (inbox.claims, await delivery.settlement()) == (1, Settlement.REQUEUE)
    assert link.reports == []
