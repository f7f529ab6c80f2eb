"""An agent at work: registered, consuming, beating, draining."""

import asyncio
import threading
from contextlib import aclosing
from pathlib import Path

import pytest

from dispatcher.errors import ConfigurationError, OutcomeUnknownError, RegistrationError
from dispatcher.protocol.frames import Frame, ResultStatus
from dispatcher.protocol.link import Settlement
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from tests.sdk.stub_link import WAIT_S, StubLink, refused, task_frame


class Blocking:
    """An agent whose handlers hold their thread until let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()
        self.agent = Agent("tester", max_load=2, environment="staging")
        self.agent.handler("work.block", description="Blocks a thread.", idempotent=True)(self.block)
        self.agent.handler("work.freeze", description="Blocks the loop.", idempotent=True)(self.freeze)

    def block(self) -> str:
        self.began.set()
        self.let_go.wait(WAIT_S)
        return "done"

    async def freeze(self) -> str:
        return self.block()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, WAIT_S)


def runtime_of(agent: Agent, link: StubLink, **options) -> Runtime:
    return Runtime(agent, link, MemoryInbox(), options=RuntimeOptions(**options))


async def test_it_registers_then_consumes_as_much_as_it_can_run():
    work, link = Blocking(), StubLink()
    options = {"instance_name": "host-1", "key": "ard_k_s", "channel": "rabbitmq"}

    async with serving(runtime_of(work.agent, link, **options)):
        assert link.prefetch == 2

    sent = link.calls[0]
    assert (sent["type"], sent["instance_name"], sent["key"]) == ("register", "host-1", "ard_k_s")
    assert sent["declaration"]["channel"] == "rabbitmq"
    assert sent["declaration"]["environment"] == "staging"


@pytest.mark.parametrize("capability", ["work.block", "work.freeze"])
async def test_heartbeats_survive_a_blocked_handler(capability):
    work, link = Blocking(), StubLink(heartbeat_ms=1)
    async with serving(runtime_of(work.agent, link)):
        link.deliver(task_frame(capability))
        await work.has_begun()
        while not link.beats.empty():
            link.beats.get_nowait()

        beats = [await link.heard_beat() for _ in range(5)]
        work.let_go.set()

        assert {beat["running"] for beat in beats} == {1}
        assert (await link.result()).status is ResultStatus.SUCCESS


async def test_a_blocked_handler_does_not_keep_others_from_running():
    work, link = Blocking(), StubLink()
    work.agent.handler("work.quick", description="Quick.", idempotent=True)(lambda: "quick")
    async with serving(runtime_of(work.agent, link)):
        link.deliver(task_frame("work.block"))
        await work.has_begun()
        link.deliver(task_frame("work.quick", key="request-1:1"))

        assert (await link.result()).result.text == "quick"
        work.let_go.set()


async def test_a_drain_finishes_work_in_hand_before_it_leaves():
    work, link, stop = Blocking(), StubLink(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runtime_of(work.agent, link).run(stop))
        delivery = link.deliver(task_frame("work.block"))
        await work.has_begun()
        stop.set()
        late = link.deliver(task_frame("work.block", key="request-1:1"))
        busy = await link.result()
        work.let_go.set()
        await running

    assert (busy.status, await late.settlement()) == (ResultStatus.BUSY, Settlement.ACK)
    assert (await link.result()).status is ResultStatus.SUCCESS
    assert await delivery.settlement() is Settlement.ACK
    assert [call["type"] for call in link.calls] == ["register", "drain", "leave"]
    assert link.consumers == 0


async def test_work_that_outlives_the_drain_is_given_back():
    work, link, stop = Blocking(), StubLink(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(runtime_of(work.agent, link, drain_s=0.02).run(stop))
        delivery = link.deliver(task_frame("work.block"))
        await work.has_begun()
        stop.set()

    work.let_go.set()
    assert await delivery.settlement() is Settlement.REQUEUE
    assert link.called("leave") == 1


async def test_a_long_run_that_outlives_the_drain_is_left_for_the_next_process_to_tell(tmp_path: Path):
    work, link, stop, path = Blocking(), StubLink(), asyncio.Event(), tmp_path / "inbox.sqlite"
    async with aclosing(await SqliteInbox.open(path)) as inbox, asyncio.TaskGroup() as group:
        runtime = Runtime(work.agent, link, inbox, options=RuntimeOptions(drain_s=0.02))
        group.create_task(runtime.run(stop))
        delivery = link.deliver(task_frame("work.block", lease_ms=60_000))
        await work.has_begun()
        stop.set()
    work.let_go.set()

    async with (
        aclosing(await SqliteInbox.open(path)) as inbox,
        serving(Runtime(work.agent, link, inbox, options=RuntimeOptions())),
    ):
        result = await link.result()

    assert await delivery.settlement() is Settlement.ACK
    assert (result.error_code, result.can_retry) == ("outcome_unknown", True)


async def test_it_stops_at_once_while_nobody_answers():
    work, link, stop = Blocking(), StubLink(), asyncio.Event()
    link.script = [OutcomeUnknownError("no broker")] * 3
    stop.set()

    await runtime_of(work.agent, link).run(stop)

    assert link.called("drain") == link.called("leave") == 0


async def test_a_refusal_ends_it_with_the_dispatchers_words():
    work, link = Blocking(), StubLink()
    link.script = [refused("incompatible_schema")]

    with pytest.raises(RegistrationError, match="refused: incompatible_schema"):
        await runtime_of(work.agent, link).run(asyncio.Event())


async def test_serving_raises_the_refusal_too():
    work, link = Blocking(), StubLink()
    link.script = [refused("incompatible_schema")]

    with pytest.raises(RegistrationError):
        async with serving(runtime_of(work.agent, link)):
            pytest.fail("must not be ready")


async def test_consumption_begins_again_after_the_link_failed():
    class Flaky(StubLink):
        failures = 2

        def deliveries(self, agent_id, prefetch):
            if self.failures:
                self.failures -= 1
                raise OutcomeUnknownError("connection lost")
            return super().deliveries(agent_id, prefetch)

    work, link = Blocking(), Flaky()
    work.let_go.set()
    async with serving(runtime_of(work.agent, link, reconnect_s=0.0)):
        link.deliver(task_frame("work.block"))

        assert (await link.result()).status is ResultStatus.SUCCESS


class Fencing(StubLink):
    """Fences the first lease, and tells how many consumed when each registration was asked for."""

    def __init__(self) -> None:
        super().__init__(heartbeat_ms=1)
        self.consuming: list[int] = []
        self.then: list[Frame] = []
        self.fence = asyncio.Event()
        self.registered_again = asyncio.Event()

    async def call(self, frame: bytes) -> bytes:
        if b'"heartbeat"' in frame and self.fence.is_set():
            self.fence.clear()
            self.script = [refused("lease_superseded"), *self.then]
        elif b'"register"' in frame:
            self.consuming.append(self.consumers)
            if len(self.consuming) > 1:
                self.registered_again.set()
        return await super().call(frame)


async def test_a_fenced_instance_stops_consuming_before_it_registers_again():
    work, link = Blocking(), Fencing()
    async with serving(runtime_of(work.agent, link)), asyncio.timeout(WAIT_S):
        link.deliver(task_frame("work.block"))
        await work.has_begun()
        link.fence.set()
        await link.registered_again.wait()
        work.let_go.set()
        in_hand = await link.result()
        link.deliver(task_frame("work.block", key="request-1:1"))
        new = await link.result()

    assert link.consuming == [0, 0]
    assert (in_hand.status, new.status) == (ResultStatus.SUCCESS, ResultStatus.SUCCESS)


async def test_a_fenced_instance_that_is_refused_ends():
    work, link = Blocking(), Fencing()
    link.then = [refused("private_inbox")]
    link.fence.set()

    with pytest.raises(RegistrationError, match="refused: private_inbox"):
        async with asyncio.timeout(WAIT_S):
            await runtime_of(work.agent, link).run(asyncio.Event())

    assert link.consumers == 0


def test_an_agent_over_a_limit_or_a_bad_name_is_refused_before_anything_starts():
    with pytest.raises(ConfigurationError, match="needs at least one handler"):
        runtime_of(Agent("tester"), StubLink())
    with pytest.raises(ConfigurationError, match="instance name 'My Host'"):
        runtime_of(Blocking().agent, StubLink(), instance_name="My Host")
