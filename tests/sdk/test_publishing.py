"""A result is published until it is confirmed; its delivery is kept meanwhile (I1, I4)."""

import asyncio

import pytest

from dispatcher.backoff import BackoffRules
from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError, RefusedError, TooLargeError, UnroutableError
from dispatcher.protocol.frames import ResultStatus
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import DELIVERY_LIMIT
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.parts import IntakeRules
from dispatcher.sdk.runtime import Runtime, RuntimeOptions
from tests.sdk.stub_link import StubDelivery, StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


class Hurried(SystemClock):
    """Waits for nothing and remembers how long it should have."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await super().sleep(0)


class Alarmed(StubLink):
    """A broker that confirms nothing until `over` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()
        self.tried = asyncio.Event()

    async def publish_result(self, frame: bytes) -> None:
        if not self.over.is_set():
            self.tries += 1
            self.tried.set()
            raise OutcomeUnknownError("no confirm")
        await super().publish_result(frame)


@pytest.mark.parametrize("error", [OutcomeUnknownError, RefusedError, UnroutableError])
@pytest.mark.parametrize("capability", ["work.do", "work.once"])
async def test_a_result_outlasts_more_failures_than_a_delivery_has_returns(error, capability):
    work, link = Work(), StubLink()
    link.publish_errors = [error("no confirm")] * (DELIVERY_LIMIT * 3)
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame(capability))

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).result.text == "run 1"
    assert len(work.runs) == 1


async def test_between_tries_the_pause_doubles_to_ten_seconds():
    work, link, clock = Work(), StubLink(), Hurried()
    link.publish_errors = [OutcomeUnknownError("no confirm")] * 7
    async with intake_of(work, link, clock=clock, rules=IntakeRules()) as intake:
        await handled(intake, task_frame())

    longest = [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert len(clock.pauses) == len(longest)
    assert all(most / 2 <= pause <= most for pause, most in zip(clock.pauses, longest, strict=True))


async def test_during_an_alarm_the_delivery_stays_unsettled_and_in_hand():
    work, link = Work(), Alarmed()
    delivery = StubDelivery(task_frame().model_dump_json().encode())
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(intake.handle(delivery))
        await link.tried.wait()

        assert (delivery.settlements, intake.in_hand) == ([], 1)
        link.over.set()

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).status is ResultStatus.SUCCESS


async def test_what_did_not_run_is_told_as_stubbornly():
    work, link = Work(), StubLink()
    link.publish_errors = [OutcomeUnknownError("no confirm")] * (DELIVERY_LIMIT * 3)
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame(budget_ms=0))

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).status is ResultStatus.EXPIRED


async def test_a_lost_delivery_ends_the_tries_and_its_redelivery_is_told_the_stored_result():
    work, link = Work(), Alarmed()
    lost = StubDelivery(task_frame("work.once").model_dump_json().encode())
    lost.is_lost = True
    async with intake_of(work, link) as intake:
        await intake.handle(lost)
        tries = link.tries
        link.over.set()
        again = await handled(intake, task_frame("work.once"))

    assert (tries, await lost.settlement()) == (1, Settlement.REQUEUE)
    assert await again.settlement() is Settlement.ACK
    assert (await link.result()).result.text == "run 1"
    assert len(work.runs) == 1


async def test_a_frame_that_is_too_large_is_told_as_that():
    work, link = Work(), StubLink()
    link.publish_errors = [TooLargeError("a frame of 2 MB")]
    async with intake_of(work, link) as intake:
        delivery = await handled(intake, task_frame())

    assert await delivery.settlement() is Settlement.ACK
    assert (await link.result()).error_code == "result_too_large"


async def test_a_drain_waits_for_results_that_are_not_confirmed():
    work, link, stop = Work(), Alarmed(), asyncio.Event()
    rules = IntakeRules(publish=BackoffRules(first_s=0.0))
    runtime = Runtime(work.agent, link, MemoryInbox(), options=RuntimeOptions(intake=rules))
    async with asyncio.TaskGroup() as group:
        group.create_task(runtime.run(stop))
        delivery = link.deliver(task_frame())
        await link.tried.wait()
        stop.set()
        link.over.set()

    assert await delivery.settlement() is Settlement.ACK


async def test_when_the_time_for_the_drain_is_over_the_delivery_is_given_back():
    work, link, stop = Work(), Alarmed(), asyncio.Event()
    runtime = Runtime(work.agent, link, MemoryInbox(), options=RuntimeOptions(drain_s=0.02))
    async with asyncio.TaskGroup() as group:
        group.create_task(runtime.run(stop))
        delivery = link.deliver(task_frame())
        await link.tried.wait()
        stop.set()

    assert await delivery.settlement() is Settlement.REQUEUE
    assert link.called("leave") == 1
