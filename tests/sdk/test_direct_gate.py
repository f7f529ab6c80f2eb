"""Who gets past an agent's gate, and what its calls come to."""

import asyncio
from dataclasses import replace

import pytest

from dispatcher.errors import ConfigurationError, RequestError, UnavailableError
from dispatcher.protocol.direct import DirectKey
from dispatcher.protocol.frames import TaskContext
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.direct import DirectGate
from dispatcher.sdk.endpoint_runs import CALLS_PER_PLACE
from dispatcher.sdk.memory_inbox import MemoryInbox
from tests.sdk.gating import (
    BY_DISPATCHER,
    CREDENTIAL,
    KEYS,
    RULES,
    FailingInbox,
    direct_task,
    gate_of,
    result,
    sent,
    ticket,
)
from tests.sdk.stub_link import task_frame
from tests.sdk.working import Work


async def test_a_ticket_opens_the_gate():
    work = Work()
    async with gate_of(work) as gate:
        task = direct_task()
        reply = await gate.answer({"Direct-Ticket": ticket()["direct-ticket"]}, sent(task))

    frame = result(reply)
    assert (frame.result.text, frame.token, frame.attempt) == ("run 1", task.token, 1)
    assert reply.headers["Content-Type"] == "application/json"


async def test_the_dispatcher_is_known_by_its_credential():
    work = Work()
    async with gate_of(work) as gate:
        reply = await gate.answer(BY_DISPATCHER, sent(task_frame()))

    assert result(reply).result.text == "run 1"


@pytest.mark.parametrize(
    "sender",
    [{}, {"authorization": "Bearer other"}, {"authorization": "Bearer ü"}, {"authorization": "\udcff"}],
)
async def test_others_are_refused(sender):
    work = Work()
    async with gate_of(work) as gate:
        assert (await gate.answer(sender, sent(task_frame()))).status == 401

    assert work.runs == []


async def test_without_a_credential_nobody_is_the_dispatcher():
    work = Work()
    async with gate_of(work, credential=None) as gate:
        for sender in ({}, {"authorization": "Bearer None"}, {"authorization": "Bearer "}):
            assert (await gate.answer(sender, sent(task_frame()))).status == 401
        assert (await gate.answer(ticket(), sent(direct_task()))).status == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "request-1:0"},
        {"repeat": 1},
        {"lease_ms": 1000},
        {"context": TaskContext(caller="bob")},
        {"context": TaskContext()},
        {"agent_id": "another"},
    ],
)
async def test_a_ticket_is_good_for_its_callers_own_tasks_only(changes):
    work = Work()
    fields = {
        "capability": "work.do",
        "key": direct_task().idempotency_key,
        "context": TaskContext(caller="alice"),
    }
    async with gate_of(work) as gate:
        reply = await gate.answer(ticket(), sent(task_frame(**{**fields, **changes})))

    assert (reply.status, work.runs) == (403, [])


async def test_keys_replace_those_before():
    work, newer = Work(), DirectKey(key_id="8", secret="cd" * 32)
    async with gate_of(work) as gate:
        gate.learn(KEYS.model_copy(update={"keys": [newer]}).model_dump())

        assert (await gate.answer(ticket(), sent(direct_task()))).status == 403
        assert (await gate.answer(ticket(key=newer), sent(direct_task()))).status == 200


@pytest.mark.parametrize("document", [{}, {**KEYS.model_dump(), "agent_id": "another"}])
async def test_what_are_not_its_keys_is_not_learnt(document):
    async with gate_of(Work()) as gate:
        with pytest.raises(ConfigurationError):
            gate.learn(document)

        assert (await gate.answer(ticket(), sent(direct_task()))).status == 200


async def test_a_repetition_is_answered_from_the_inbox_whoever_asks():
    work = Work()
    async with gate_of(work) as gate:
        by_dispatcher = await gate.answer(BY_DISPATCHER, sent(direct_task("work.once")))
        again = await gate.answer(ticket("work.once"), sent(direct_task("work.once", attempt=2)))

    assert result(again).result == result(by_dispatcher).result
    assert (result(again).attempt, len(work.runs)) == (2, 1)


async def test_beyond_its_capacity_it_says_busy():
    work = Work(max_load=1)
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        first = group.create_task(gate.answer(ticket("work.wait"), sent(direct_task("work.wait"))))
        await work.began.wait()
        busy = await gate.answer(ticket(), sent(direct_task(key="k2")))
        running = gate.running
        work.finish()

    assert (result(busy).status, running) == ("busy", 1)
    assert result(await first).status == "success"


async def test_beyond_its_pace_direct_calls_are_refused_and_the_dispatchers_are_not():
    work = Work()
    work.agent = Agent("tester", max_qps=1)
    work.agent.handler("work.do", description="Works.", idempotent=True)(work.do)
    async with gate_of(work) as gate:
        first = await gate.answer(ticket(), sent(direct_task()))
        second = await gate.answer(ticket(), sent(direct_task(key="k2")))
        third = await gate.answer(BY_DISPATCHER, sent(task_frame()))

    assert [first.status, second.status, third.status] == [200, 429, 200]
    assert second.headers["Retry-After"] == "1"


@pytest.mark.parametrize(("body", "status"), [(b"{}", 400), (b"", 400), (b"x" * (MAX_FRAME_BYTES + 1), 413)])
async def test_what_is_no_task_is_refused(body, status):
    async with gate_of(Work()) as gate:
        assert (await gate.answer(ticket(), body)).status == status


async def test_whoever_gives_up_waiting_disturbs_no_run():
    work = Work()
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        impatient = group.create_task(gate.answer(ticket("work.wait"), sent(direct_task("work.wait"))))
        await work.began.wait()
        impatient.cancel()
        await asyncio.wait({impatient})
        again = group.create_task(gate.answer(ticket("work.wait"), sent(direct_task("work.wait", attempt=2))))
        work.finish()

    assert (result(await again).result.text, len(work.runs)) == ("run 1", 1)


async def test_calls_in_hand_are_bounded():
    work = Work(max_load=1)
    body = sent(direct_task("work.wait"))
    async with gate_of(work) as gate, asyncio.TaskGroup() as group:
        waiting = [group.create_task(gate.answer(ticket("work.wait"), body)) for _ in range(CALLS_PER_PLACE)]
        await work.began.wait()
        refused = await gate.answer(ticket("work.wait"), body)
        work.finish()

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert [result(await one).result.text for one in waiting] == ["run 1"] * CALLS_PER_PLACE


async def test_without_its_inbox_nothing_starts_and_the_caller_may_go_elsewhere():
    work = Work()
    async with gate_of(work, FailingInbox(UnavailableError("gone"))) as gate:
        reply = await gate.answer(ticket(), sent(direct_task()))

    assert (reply.status, reply.headers["Retry-After"], work.runs) == (503, "1", [])


async def test_an_error_of_one_call_ends_no_other():
    work = Work()
    async with gate_of(work, FailingInbox(ZeroDivisionError())) as gate:
        replies = [await gate.answer(ticket(), sent(direct_task())) for _ in range(2)]

    assert [reply.status for reply in replies] == [503, 503]


async def test_a_gate_that_is_not_open_starts_nothing():
    work = Work()
    gate = DirectGate(work.agent, MemoryInbox(), credential=CREDENTIAL)
    gate.learn(KEYS.model_dump())

    assert (await gate.answer(ticket(), sent(direct_task()))).status == 503


async def test_leaving_lets_go_of_handlers_that_do_not_end():
    work = Work()
    async with asyncio.TaskGroup() as group:
        async with gate_of(work) as gate:
            waiting = group.create_task(gate.answer(ticket("work.block"), sent(direct_task("work.block"))))
            await work.began.wait()
        reply = await waiting
        work.let_go.set()

    assert (reply.status, dict(reply.headers)) == (503, {})


async def test_the_declaration_is_open_to_direct_calls():
    async with gate_of(Work()) as gate:
        declared = gate.declaration("http://tester.example/tasks")

    assert (declared.channel, declared.endpoint) == ("http", "http://tester.example/tasks")
    assert (declared.direct_fallback, len(declared.capabilities)) == (True, 4)


class Pauses:
    """A clock that tells each pause, and goes on when it is told to."""

    def __init__(self) -> None:
        self.pauses: asyncio.Queue[float] = asyncio.Queue()
        self.go_on = asyncio.Semaphore(0)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.pauses.put_nowait(seconds)
        await self.go_on.acquire()


async def test_keys_are_renewed_until_the_dispatcher_grants_none():
    script = [
        KEYS.model_dump(),
        UnavailableError("gone"),
        RequestError("no more", code="not_found"),
    ]

    async def fetch():
        step = script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    clock, statuses, pauses = Pauses(), [], []
    async with (
        gate_of(Work(), clock=clock, rules=replace(RULES, retry_s=3.0)) as gate,
        asyncio.TaskGroup() as group,
    ):
        renewing = group.create_task(gate.renew(fetch))
        for key in ("k1", "k2", "k3"):
            pauses.append(await clock.pauses.get())
            statuses.append((await gate.answer(ticket(), sent(direct_task(key=key)))).status)
            if script:
                clock.go_on.release()
        renewing.cancel()

    assert pauses == [60, 3.0, 3.0]
    assert statuses == [200, 200, 403]
