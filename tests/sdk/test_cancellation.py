"""A task that was cancelled stops, is told as such, and never runs again."""

import asyncio
import threading

import pytest

from dispatcher.protocol.link import Settlement
from dispatcher.sdk.cancellation import KEEP_S, MOST, Cancellations
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.task_view import TaskView
from tests.sdk.stub_link import WAIT_S, StubLink, task_frame
from tests.sdk.working import Work, cancelling, handled, intake_of


def test_the_last_thousand_are_remembered_for_ten_minutes():
    cancelled = Cancellations()
    for number in range(MOST + 1):
        cancelled.add(f"t{number}", 0.0)

    assert not cancelled.holds("t0", 0.0)
    assert cancelled.holds("t1", KEEP_S - 1)
    assert not cancelled.holds("t1", KEEP_S)


async def test_an_async_handler_is_cancelled_and_told_as_such():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        handling = group.create_task(handled(intake, task_frame("work.wait")))
        await work.began.wait()
        intake.cancel(cancelling("task-request-1:0"))
        result = await link.result()

    assert (result.error_code, result.can_retry) == ("cancelled", False)
    assert await handling.result().settlement() is Settlement.ACK


async def test_a_blocking_handler_sees_that_it_is_cancelled():
    work, link = Work(), StubLink()

    def looks(task: TaskView) -> str:
        work.loop.call_soon_threadsafe(work.began.set)
        assert task.cancelled.wait(WAIT_S)
        return f"cancelled: {task.is_cancelled}"

    work.agent.handler("work.look", description="Looks.")(looks)
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.look")))
        await work.began.wait()
        intake.cancel(cancelling("task-request-1:0"))
        result = await link.result()

    assert result.error_code == "cancelled"


async def test_a_blocking_handler_that_does_not_look_is_answered_for_and_keeps_its_key():
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.block")))
        await work.began.wait()
        intake.cancel(cancelling("task-request-1:0"))
        first = await link.result()
        work.let_go.set()
        await handled(intake, task_frame("work.block", attempt=2))

    assert (first.error_code, (await link.result()).error_code) == ("cancelled", "cancelled")
    assert len(work.runs) == 1


@pytest.mark.parametrize("capability", ["work.do", "work.once"])
async def test_a_cancel_that_comes_before_its_task_keeps_it_from_running(capability):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        intake.cancel(cancelling("task-request-1:0"))
        first = await handled(intake, task_frame(capability))
        await handled(intake, task_frame(capability, attempt=2))

    assert await first.settlement() is Settlement.ACK
    assert [(await link.result()).error_code for _ in range(2)] == ["cancelled"] * 2
    assert not work.runs


@pytest.mark.parametrize(
    "frame", [b"junk", cancelling("unheard"), cancelling("task-request-1:0", agent_id="other")]
)
async def test_a_cancel_for_nothing_here_changes_nothing(frame):
    work, link = Work(), StubLink()
    async with intake_of(work, link) as intake:
        intake.cancel(frame)
        await handled(intake, task_frame())

    assert (await link.result()).result.text == "run 1"


async def test_a_cancelled_run_says_nothing_of_the_agents_health():
    work, link = Work(), StubLink(heartbeat_ms=1)
    async with serving(Runtime(work.agent, link, MemoryInbox(), options=RuntimeOptions())):
        link.deliver(task_frame("work.wait"))
        await work.began.wait()
        link.cancel("task-request-1:0")
        await link.result()
        while not link.beats.empty():
            link.beats.get_nowait()

        assert (await link.heard_beat())["errors"] == 0


async def test_past_its_time_a_blocking_handler_is_told_to_stop_too():
    work, link = Work(), StubLink()
    told = threading.Event()

    def looks(task: TaskView) -> str:
        if task.cancelled.wait(WAIT_S):
            told.set()
        return "late"

    work.agent.handler("work.look", description="Looks.", idempotent=True)(looks)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.look", budget_ms=50))

    assert (await link.result()).error_code == "timeout"
    assert told.is_set()
