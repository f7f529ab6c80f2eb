"""A call that comes twice to an agent's gate, and what the gate may say of the second (I2)."""

import asyncio
from dataclasses import replace

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import UnavailableError
from dispatcher.protocol.frames import TaskFrame
from dispatcher.sdk.direct import DirectGate, GateReply
from dispatcher.sdk.endpoint_runs import CALLS_PER_PLACE
from dispatcher.sdk.memory_inbox import MemoryInbox
from tests.sdk.gating import (
    BY_DISPATCHER,
    CREDENTIAL,
    RULES,
    FailingInbox,
    gate_of,
    result,
    sent,
)
from tests.sdk.stub_link import task_frame
from tests.sdk.working import Work

ONCE = task_frame("work.hold")
OTHER = task_frame("work.hold", key="request-2:0")


def holding(*, max_load: int = 1) -> Work:
    """`work.hold` waits as `work.wait` does, and must not run twice."""
    work = Work(max_load=max_load)
    work.agent.handler("work.hold", description="Holds.")(work.wait)
    return work


def surely_not_started(reply: GateReply) -> bool:
    """Whether the dispatcher may give the task to another agent now, whatever it is."""
    if reply.status == 200:
        return result(reply).status in ("busy", "expired")
    return reply.status == 429 or (reply.status == 503 and "Retry-After" in reply.headers)


async def answered(gate: DirectGate, task: TaskFrame) -> GateReply:
    return await gate.answer(BY_DISPATCHER, sent(task))


async def filled(gate: DirectGate, work: Work, group: asyncio.TaskGroup, calls: int = CALLS_PER_PLACE):
    """The one place is taken, and so many calls in hand wait for its run."""
    first = [group.create_task(answered(gate, ONCE)) for _ in range(CALLS_PER_PLACE)]
    await work.began.wait()
    return first + [group.create_task(answered(gate, ONCE)) for _ in range(calls - CALLS_PER_PLACE)]


async def test_with_too_many_calls_in_hand_what_runs_is_not_said_not_to_have_started():
    work = holding()
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        waiting = await filled(gate, work, group)
        second = await answered(gate, ONCE)
        work.finish()

    assert (second.status, second.body, surely_not_started(second)) == (202, b"", False)
    assert {result(call.result()).result.text for call in waiting} == {"run 1"}


async def test_with_too_many_calls_in_hand_what_another_instance_runs_has_not_ended():
    work, other, inbox = holding(), holding(), MemoryInbox()
    async with (
        gate_of(work, inbox) as gate,
        gate_of(other, inbox) as elsewhere,
        asyncio.TaskGroup() as group,
    ):
        first = group.create_task(answered(elsewhere, OTHER))
        await other.began.wait()
        await filled(gate, work, group)
        second = await answered(gate, OTHER)
        for one in (work, other):
            one.finish()

    assert (second.status, surely_not_started(second)) == (202, False)
    assert (result(first.result()).result.text, len(work.runs)) == ("run 1", 1)


@pytest.mark.parametrize(("capability", "status"), [("work.hold", 202), ("work.wait", 503)])
async def test_while_it_closes_what_another_instance_runs_has_not_ended(capability, status):
    task = OTHER.model_copy(update={"capability": capability})
    work, other, inbox = holding(), holding(), MemoryInbox()
    async with (
        gate_of(work, inbox, rules=replace(RULES, drain_s=30.0)) as gate,
        gate_of(other, inbox) as elsewhere,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(answered(elsewhere, task))
        group.create_task(answered(gate, ONCE))
        await asyncio.gather(work.began.wait(), other.began.wait())
        closing = group.create_task(gate.__aexit__(None, None, None))
        await SystemClock().sleep(0)
        second = await answered(gate, task)
        for one in (work, other):
            one.finish()
        await closing

    assert (second.status, surely_not_started(second)) == (status, False)


async def test_with_too_many_calls_in_hand_what_has_ended_is_told():
    work = holding()
    done = task_frame("work.once", key="request-3:0")
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        first = await answered(gate, done)
        await filled(gate, work, group)
        second = await answered(gate, done)
        work.finish()

    assert result(second).result == result(first).result


async def test_what_found_no_room_goes_elsewhere_and_no_copy_of_it_starts_later():
    work = holding()
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        await filled(gate, work, group)
        refused = await answered(gate, OTHER)
        work.finish()
        await answered(gate, ONCE)
        copy = await answered(gate, OTHER)

    assert [result(reply).status for reply in (refused, copy)] == ["busy", "busy"]
    assert refused.headers["Retry-After"] == "1"
    assert len(work.runs) == 1


async def test_beyond_all_bounds_nobody_says_anything_of_what_may_run():
    work, plain = holding(), task_frame("work.do", key="request-4:0")
    inbox = SlowInbox()
    async with gate_of(work, inbox) as gate, asyncio.TaskGroup() as group:
        calls = [group.create_task(answered(gate, ONCE)) for _ in range(2 * CALLS_PER_PLACE)]
        await inbox.asked.wait()
        once, idempotent = await answered(gate, ONCE), await answered(gate, plain)
        for call in calls:
            call.cancel()

    assert (once.status, surely_not_started(once)) == (503, False)
    assert (idempotent.status, surely_not_started(idempotent)) == (503, True)


class SlowInbox(MemoryInbox):
    """Does not answer."""

    def __init__(self):
        super().__init__()
        self.asked = asyncio.Event()

    async def claim(self, claim):
        self.asked.set()
        await asyncio.Event().wait()


async def test_an_inbox_that_fails_is_asked_again_for_what_may_not_run_elsewhere():
    work, inbox = holding(), FailingInbox(UnavailableError("gone"), times=3)
    async with gate_of(work, inbox) as gate:
        reply = await answered(gate, task_frame("work.once"))

    assert (result(reply).result.text, len(work.runs)) == ("run 1", 1)


async def test_where_the_inbox_fails_to_the_end_nobody_knows():
    work, inbox = holding(), FailingInbox(UnavailableError("gone"))
    async with gate_of(work, inbox) as gate:
        reply = await answered(gate, task_frame("work.once", budget_ms=20))

    assert (reply.status, surely_not_started(reply), work.runs) == (503, False, [])


async def test_while_it_closes_a_run_is_told_and_nothing_more_starts():
    work = holding(max_load=2)
    async with gate_of(work, rules=replace(RULES, drain_s=30.0)) as gate, asyncio.TaskGroup() as group:
        first = group.create_task(answered(gate, ONCE))
        await work.began.wait()
        closing = group.create_task(gate.__aexit__(None, None, None))
        await SystemClock().sleep(0)
        second, other = group.create_task(answered(gate, ONCE)), await answered(gate, OTHER)
        work.finish()
        await closing

    assert [result(call.result()).result.text for call in (first, second)] == ["run 1", "run 1"]
    assert (result(other).status, len(work.runs)) == ("busy", 1)


@pytest.mark.parametrize("turns", range(6))
async def test_a_call_that_comes_just_as_it_closes_is_answered(turns):
    work = holding()

    async def one_after_the_other() -> GateReply:
        await answered(gate, ONCE)
        for _ in range(turns):
            await SystemClock().sleep(0)
        return await answered(gate, OTHER)

    async with gate_of(work, rules=replace(RULES, drain_s=30.0)) as gate, asyncio.TaskGroup() as group:
        second = group.create_task(one_after_the_other())
        await work.began.wait()
        group.create_task(gate.__aexit__(None, None, None))
        await SystemClock().sleep(0)
        work.finish()

    assert second.result().status in (200, 503)
    assert len(work.runs) == 1


async def test_one_whose_closing_is_broken_off_starts_nothing_more():
    work = holding()
    async with gate_of(work, rules=replace(RULES, drain_s=30.0)) as gate, asyncio.TaskGroup() as group:
        first = group.create_task(answered(gate, ONCE))
        await work.began.wait()
        closing = group.create_task(gate.__aexit__(None, None, None))
        await SystemClock().sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        other = await answered(gate, OTHER)

    assert [first.result().status, other.status] == [503, 503]
    assert len(work.runs) == 1


@pytest.mark.parametrize(("capability", "may_go_elsewhere"), [("work.do", True), ("work.once", False)])
async def test_a_gate_that_is_not_open_has_not_looked(capability, may_go_elsewhere):
    gate = DirectGate(Work().agent, MemoryInbox(), credential=CREDENTIAL)

    reply = await answered(gate, task_frame(capability))

    assert (reply.status, surely_not_started(reply)) == (503, may_go_elsewhere)
