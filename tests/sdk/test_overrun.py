"""A handler that outlives its budget keeps its key: no second run of it starts beside it (I2)."""

import asyncio

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import UnavailableError
from dispatcher.protocol.frames import ResultStatus, TaskFrame
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.parts import IntakeRules
from dispatcher.sdk.task_view import TaskView
from tests.sdk.stub_link import WAIT_S, StubLink, task_frame
from tests.sdk.working import Work, handled, intake_of


def short(attempt: int = 1) -> TaskFrame:
    """A task whose handler outlives its budget."""
    return task_frame("work.block", attempt=attempt, budget_ms=50)


class Still(SystemClock):
    """Stands still until it is moved."""

    elapsed_s = 0.0

    def monotonic(self) -> float:
        return self.elapsed_s


class HeldInbox(MemoryInbox):
    """Says when a claim was held on; fails to as often as told."""

    def __init__(self, clock: Still | None = None, *, failures: int = 0) -> None:
        super().__init__(clock=clock)
        self.held = asyncio.Event()
        self._failures = failures

    async def hold(self, key, owner, hold_s):
        if self._failures:
            self._failures -= 1
            raise UnavailableError("disk")
        await super().hold(key, owner, hold_s)
        self.held.set()


async def test_a_later_attempt_waits_for_the_run_and_takes_its_outcome():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, short()))
        first = await link.result()
        group.create_task(handled(intake, task_frame("work.block", attempt=2)))
        group.create_task(handled(intake, task_frame("work.block", attempt=3)))
        work.let_go.set()
        later = [await link.result(), await link.result()]

    assert (first.attempt, first.error_code, first.can_retry) == (1, "timeout", True)
    assert {(result.attempt, result.result.text) for result in later} == {(2, "run 1"), (3, "run 1")}
    assert len(work.runs) == 1


async def test_the_timeout_is_told_and_settled_before_the_handler_has_ended():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        handling = group.create_task(handled(intake, short()))
        await link.result()
        await intake.idle()

        assert not handling.done()
        work.let_go.set()

    assert await handling.result().settlement() is Settlement.ACK


async def test_how_the_run_really_ended_is_stored():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        async with asyncio.TaskGroup() as group:
            group.create_task(handled(intake, short()))
            await link.result()
            work.let_go.set()
        await handled(intake, short())

    assert (await link.result()).result.text == "run 1"
    assert len(work.runs) == 1


async def test_while_the_run_goes_on_attempts_time_out_by_their_own_budget_and_start_nothing():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, short()))
        await link.result()
        for attempt in (1, 2, 3):
            delivery = await handled(intake, short(attempt))
            result = await link.result()

            assert await delivery.settlement() is Settlement.ACK
            assert (result.attempt, result.error_code, result.can_retry) == (attempt, "timeout", True)
        assert len(work.runs) == 1
        work.let_go.set()


async def test_a_run_past_its_budget_keeps_its_place():
    work, link = Work(max_load=1), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, short()))
        await link.result()
        await handled(intake, task_frame(key="request-1:1"))
        work.let_go.set()

    assert (await link.result()).status is ResultStatus.BUSY
    assert len(work.runs) == 1


async def test_only_after_a_late_failure_a_later_attempt_runs_again():
    work, link = Work(), StubLink()

    def fails(task: TaskView) -> str:
        work.runs.append(task)
        work.let_go.wait(WAIT_S)
        raise ValueError("late")

    work.agent.handler("work.fail", description="Fails late.", idempotent=True)(fails)
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.fail", budget_ms=50)))
        first = await link.result()
        group.create_task(handled(intake, task_frame("work.fail", attempt=2)))
        work.let_go.set()

    assert first.error_code == "timeout"
    assert (await link.result()).error_code == "agent_error"
    assert [task.attempt for task in work.runs] == [1, 2]


@pytest.mark.parametrize("failures", [0, 2])
async def test_the_claim_of_a_run_past_its_budget_is_held_against_other_instances(failures):
    work, other, link, clock = Work(), Work(), StubLink(), Still()
    inbox = HeldInbox(clock, failures=failures)
    rules = IntakeRules(look_s=0.001, claim_margin_s=0.02)
    async with (
        intake_of(work, link, inbox, rules=rules) as intake,
        intake_of(other, link, inbox, owner="instance-2") as elsewhere,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(handled(intake, short()))
        await link.result()
        clock.elapsed_s = 1000.0
        inbox.held.clear()
        await inbox.held.wait()
        await handled(elsewhere, short(2))
        work.let_go.set()

    assert (await link.result()).error_code == "outcome_unknown"
    assert (len(work.runs), len(other.runs)) == (1, 0)


async def test_cancelled_a_run_keeps_its_key_as_it_may_still_be_at_work():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        async with asyncio.TaskGroup() as group:
            handling = group.create_task(handled(intake, task_frame("work.block")))
            await work.began.wait()
            handling.cancel()
        await handled(intake, short(2))
        work.let_go.set()

    assert (await link.result()).error_code == "timeout"
    assert len(work.runs) == 1
