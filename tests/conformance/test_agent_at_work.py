"""An agent at work over a real channel: its signals arrive as they should, and cancellations reach it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import TypeAdapter

from dispatcher.channel.channel import Channel, Inbound
from dispatcher.channel.composite import TaskChannel
from dispatcher.channel.http import HttpChannel
from dispatcher.channel.http_call import CallRules, HttpCaller
from dispatcher.channel.http_policy import LOOPBACK, AddressPolicy
from dispatcher.channel.in_process import InProcessChannel
from dispatcher.channel.rabbitmq import RabbitChannel
from dispatcher.identifiers import AgentId, InstanceId, ReplicaId, new_id
from dispatcher.protocol.frames import (
    AcknowledgedFrame,
    CancelFrame,
    PartialFrame,
    RegisteredFrame,
    ReportFrame,
    ResultFrame,
    SignalFrame,
    TaskFrame,
    TaskPayload,
)
from dispatcher.protocol.link import Link, Settlement
from dispatcher.protocol.topology import Topology
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.direct import DirectGate
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.rabbitmq import RabbitLink
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.task_view import TaskView
from tests.conformance.gate_server import serving as serving_gate

WAIT_S = 30.0
TALKER = AgentId("talker")
CREDENTIAL = "only-the-dispatcher-has-this"
_reports: TypeAdapter[ResultFrame | SignalFrame] = TypeAdapter(ReportFrame)


class Talker:
    """An agent whose one handler goes on until it is let go, and one that talks."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = asyncio.Event()
        self.agent = Agent(TALKER, max_load=2)
        self.agent.handler("talk.on", description="Goes on.", idempotent=True)(self.go_on)
        self.agent.handler("talk.stream", description="Talks.", idempotent=True)(self.talk)

    async def go_on(self, task: TaskView) -> str:
        self.let_go, self.handlers_loop = asyncio.Event(), asyncio.get_running_loop()
        self.loop.call_soon_threadsafe(self.began.set)
        task.progress(0.5)
        await self.let_go.wait()
        return "done"

    async def talk(self) -> AsyncIterator[str]:
        for word in ("one ", "two ", "three"):
            yield word

    def finish(self) -> None:
        self.handlers_loop.call_soon_threadsafe(self.let_go.set)


class Dispatcher:
    """Grants every registration and keeps what agents report."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[ResultFrame | SignalFrame] = asyncio.Queue()

    def inbound(self) -> Inbound:
        return Inbound(
            on_result=self._on_result,
            on_registry=self._on_registry,
            on_heartbeat=lambda _: None,
            on_wake=lambda _: None,
            on_registry_change=lambda: None,
        )

    async def until_result(self) -> list[ResultFrame | SignalFrame]:
        """Every report up to the next result."""
        reports: list[ResultFrame | SignalFrame] = []
        async with asyncio.timeout(WAIT_S):
            while not reports or not isinstance(reports[-1], ResultFrame):
                reports.append(await self.reports.get())
        return reports

    async def until(self, kind: str) -> None:
        async with asyncio.timeout(WAIT_S):
            while (await self.reports.get()).type != kind:
                continue

    async def _on_result(self, frame: bytes) -> Settlement:
        self.reports.put_nowait(_reports.validate_json(frame))
        return Settlement.ACK

    async def _on_registry(self, frame: bytes) -> bytes:
        if b'"register"' not in frame:
            return AcknowledgedFrame().model_dump_json().encode()
        granted = RegisteredFrame(
            agent_id=TALKER,
            instance_id="instance",
            lease_id="lease",
            heartbeat_ms=60_000,
            offline_after_ms=60_000,
            declaration_digest="digest",
        )
        return granted.model_dump_json().encode()


@dataclass(frozen=True, kw_only=True)
class World:
    """A dispatcher, the channel between, and an agent at work."""

    dispatcher: Dispatcher
    channel: TaskChannel
    talker: Talker

    async def send(self, capability: str, **more: Any) -> None:
        fields = {
            "request_id": "request",
            "task_id": "task",
            "attempt": 1,
            "idempotency_key": "request:0",
            "token": "0123456789abcdef",
            "agent_id": TALKER,
            "capability": capability,
            "payload": TaskPayload(text="go"),
            "budget_ms": 60_000,
            "start_within_ms": 60_000,
            "reply_to": "results",
        }
        await self.channel.send(TALKER, TaskFrame.model_validate({**fields, **more}))


@pytest.fixture(params=["in-process", "rabbitmq"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with linked(request) as world:
        yield world


@asynccontextmanager
async def linked(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    opened = in_process if request.param == "in-process" else over_rabbitmq
    url = request.getfixturevalue("amqp_url") if request.param == "rabbitmq" else ""
    dispatcher, talker = Dispatcher(), Talker()
    async with opened(url, dispatcher) as (channel, link):
        await channel.prepare(TALKER)
        runtime = Runtime(talker.agent, link, MemoryInbox(), options=RuntimeOptions(drain_s=1.0))
        async with asyncio.timeout(2 * WAIT_S), serving(runtime):
            yield World(dispatcher=dispatcher, channel=channel, talker=talker)


@pytest.fixture(params=["in-process", "rabbitmq", "http"])
async def any_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Over HTTP there is no link: the agent says 202 to every task, and later how it ended."""
    if request.param != "http":
        async with linked(request) as world:
            yield world
        return
    dispatcher, talker = Dispatcher(), Talker()
    async with (
        asyncio.timeout(2 * WAIT_S),
        DirectGate(talker.agent, MemoryInbox(), credential=CREDENTIAL) as gate,
        serving_gate(gate, later=dispatcher.inbound().on_result) as endpoint,
    ):
        rules, policy = CallRules(credentials={TALKER: CREDENTIAL}), AddressPolicy(allowed=LOOPBACK)
        channel = HttpChannel(lambda _: endpoint, HttpCaller(rules, policy))
        async with channel.open(dispatcher.inbound()):
            yield World(dispatcher=dispatcher, channel=channel, talker=talker)


@asynccontextmanager
async def in_process(_url: str, dispatcher: Dispatcher) -> AsyncIterator[tuple[Channel, Link]]:
    channel = InProcessChannel()
    async with channel.open(dispatcher.inbound()):
        yield channel, channel.link()


@asynccontextmanager
async def over_rabbitmq(url: str, dispatcher: Dispatcher) -> AsyncIterator[tuple[Channel, Link]]:
    topology = Topology(prefix=f"test-{new_id()}")
    channel = RabbitChannel(url, topology, ReplicaId(new_id()))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(channel.open(dispatcher.inbound()))
        link = await stack.enter_async_context(RabbitLink(url, topology, InstanceId(new_id())))
        async with asyncio.timeout(WAIT_S):
            await channel.ready()
            await link.ready()
        yield channel, link


async def test_a_long_task_is_started_renewed_and_told_without_its_delivery(world: World) -> None:
    await world.send("talk.on", lease_ms=100)
    for kind in ("started", "progress", "renew", "renew"):
        await world.dispatcher.until(kind)
    world.talker.finish()

    result = (await world.dispatcher.until_result())[-1]

    assert isinstance(result, ResultFrame)
    assert (result.result.text, result.token) == ("done", "0123456789abcdef")


async def test_pieces_come_in_order_and_the_result_holds_all_of_them(world: World) -> None:
    await world.send("talk.stream")

    reports: list[ResultFrame | SignalFrame] = []
    async with asyncio.timeout(WAIT_S):
        while not any(isinstance(one, ResultFrame) for one in reports) or _text(reports) != "one two three":
            reports.append(await world.dispatcher.reports.get())

    (result,) = [report for report in reports if isinstance(report, ResultFrame)]
    pieces = [report for report in reports if isinstance(report, PartialFrame)]
    assert [piece.sequence for piece in pieces] == list(range(len(pieces)))
    assert result.result.text == "one two three"


def _text(reports: Sequence[ResultFrame | SignalFrame]) -> str:
    return "".join(report.result.text or "" for report in reports if isinstance(report, PartialFrame))


@pytest.mark.parametrize("lease_ms", [None, 60_000])
async def test_a_cancellation_ends_the_run(any_world: World, lease_ms: int | None) -> None:
    await any_world.send("talk.on", lease_ms=lease_ms)
    await any_world.talker.began.wait()

    result = await asyncio.wait_for(_cancelled(any_world), WAIT_S)

    assert isinstance(result, ResultFrame)
    assert (result.error_code, result.can_retry) == ("cancelled", False)


async def test_what_was_cancelled_before_it_came_does_not_run(any_world: World) -> None:
    await any_world.send("talk.on")
    await any_world.talker.began.wait()
    await asyncio.wait_for(_cancelled(any_world), WAIT_S)
    any_world.talker.began.clear()

    await any_world.send("talk.on", attempt=2, token="another-token-of-16", idempotency_key="request:1")  # noqa: S106
    result = (await any_world.dispatcher.until_result())[-1]

    assert isinstance(result, ResultFrame)
    assert (result.error_code, result.attempt) == ("cancelled", 2)
    assert not any_world.talker.began.is_set()


async def _cancelled(world: World) -> ResultFrame | SignalFrame:
    """The result after a cancellation; one that the agent was not there for yet is sent again."""
    cancel = CancelFrame(request_id="request", task_id="task", agent_id=TALKER, reason="caller")
    while True:
        await world.channel.cancel(TALKER, cancel)
        try:
            async with asyncio.timeout(1.0):
                return (await world.dispatcher.until_result())[-1]
        except TimeoutError:
            continue
