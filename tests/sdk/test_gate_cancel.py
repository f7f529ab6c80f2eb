"""Cancelling a task behind an agent's gate."""

import asyncio

import pytest

from dispatcher.sdk.direct import DirectGate
from dispatcher.sdk.memory_inbox import MemoryInbox
from tests.sdk.gating import BY_DISPATCHER, CREDENTIAL, direct_task, gate_of, result, sent, ticket
from tests.sdk.stub_link import task_frame
from tests.sdk.working import Work

WAITING = task_frame("work.wait")


def told_as(reply) -> tuple[str, str | None, bool]:
    frame = result(reply)
    return str(frame.status), frame.error_code, frame.can_retry


CANCELLED = ("error", "cancelled", False)


@pytest.mark.parametrize("lease_ms", [None, 60_000])
async def test_a_running_handler_is_told_to_stop_and_that_is_the_tasks_end(lease_ms):
    work = Work()
    task = WAITING.model_copy(update={"lease_ms": lease_ms})
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        call = group.create_task(gate.answer(BY_DISPATCHER, sent(task)))
        await work.began.wait()

        cancelled = gate.cancel(BY_DISPATCHER, task.task_id)
        answer = await call
        again = await gate.answer(BY_DISPATCHER, sent(task.model_copy(update={"attempt": 2})))

    assert (cancelled.status, cancelled.body) == (204, b"")
    assert (told_as(answer), told_as(again)) == (CANCELLED, CANCELLED)
    assert (len(work.runs), work.runs[0].is_cancelled) == (1, True)


async def test_it_reaches_a_run_whose_caller_has_hung_up():
    work = Work()
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        call = group.create_task(gate.answer(BY_DISPATCHER, sent(WAITING)))
        await work.began.wait()
        call.cancel()
        await asyncio.wait({call})

        gate.cancel(BY_DISPATCHER, WAITING.task_id)
        again = await gate.answer(BY_DISPATCHER, sent(WAITING))

    assert (told_as(again), len(work.runs)) == (CANCELLED, 1)


async def test_what_comes_after_its_cancellation_does_not_run():
    work = Work()
    async with gate_of(work) as gate:
        gate.cancel(BY_DISPATCHER, WAITING.task_id)
        reply = await gate.answer(BY_DISPATCHER, sent(WAITING))

    assert (told_as(reply), work.runs) == (CANCELLED, [])


async def test_other_tasks_go_on():
    work = Work()
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        call = group.create_task(gate.answer(BY_DISPATCHER, sent(WAITING)))
        await work.began.wait()
        assert gate.cancel(BY_DISPATCHER, "another task").status == 204
        work.finish()

    assert result(call.result()).result.text == "run 1"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, ticket("work.wait")])
async def test_nobody_but_the_dispatcher_cancels(headers):
    work, task = Work(), direct_task("work.wait")
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        call = group.create_task(gate.answer(ticket("work.wait"), sent(task)))
        await work.began.wait()
        refused = gate.cancel(headers, task.task_id)
        work.finish()

    assert (refused.status, result(call.result()).result.text) == (401, "run 1")


async def test_a_gate_that_is_not_open_has_nothing_to_cancel():
    gate = DirectGate(Work().agent, MemoryInbox(), credential=CREDENTIAL)

    assert gate.cancel(BY_DISPATCHER, "task").status == 204
