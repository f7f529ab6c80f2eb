"""A cancelled request reaches the handler of an agent over HTTP, whoever it was that called it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import ResultFrame, TaskFrame
from dispatcher.sdk.agent import Agent as SdkAgent
from dispatcher.sdk.direct import DirectGate
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.task_view import TaskView
from tests.conformance.channel_world import DEADLINE_S
from tests.conformance.gate_server import serving
from tests.conformance.http_fleet import Gateway, made_settings, open_gateway
from tests.conformance.http_world import Agent, at_once, result_of

CREDENTIAL = "only-the-dispatcher-has-this"
CAPABILITY = "walk.on"
clock = SystemClock()


@dataclass
class Walker:
    """Goes on until it is told to stop."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.agent = SdkAgent("walker")
        self.agent.handler(CAPABILITY, description="Walks.", idempotent=True)(self.walk)

    async def walk(self, _task: TaskView) -> str:
        self.loop.call_soon_threadsafe(self.began.set)
        try:
            await asyncio.Event().wait()
        finally:
            self.loop.call_soon_threadsafe(self.stopped.set)
        return "there"


@dataclass(frozen=True, kw_only=True)
class World:
    """Two replicas, and a walker that one of them knows by name and the other by the ledger."""

    replicas: tuple[Gateway, Gateway]
    walker: Walker
    callbacks: asyncio.Queue[tuple[int, ResultFrame]]


@asynccontextmanager
async def open_world(folder: Path, *, calls_back: bool) -> AsyncIterator[World]:
    settings = await made_settings(folder, http={"credentials": {"walker": CREDENTIAL}})
    walker, callbacks = Walker(), asyncio.Queue[tuple[int, ResultFrame]]()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(open_gateway(settings))

        async def call_back(body: bytes) -> None:
            frame = ResultFrame.model_validate_json(body)
            path, document = f"/v1/results/{frame.task_id}", frame.model_dump(mode="json")
            reply = await first.client.post(path, json=document)
            callbacks.put_nowait((reply.status_code, frame))

        gate = DirectGate(walker.agent, MemoryInbox(), credential=CREDENTIAL)
        await stack.enter_async_context(gate)
        later = call_back if calls_back else None
        endpoint = await stack.enter_async_context(serving(gate, later=later))
        await first.register("walker", endpoint, CAPABILITY, idempotent=True)
        second = await stack.enter_async_context(open_gateway(settings))
        yield World(replicas=(first, second), walker=walker, callbacks=callbacks)


@pytest.mark.parametrize("calls_back", [False, True])
@pytest.mark.parametrize("cancelled_at", [0, 1])
async def test_the_handler_is_told_to_stop(tmp_path: Path, calls_back: bool, cancelled_at: int):
    async with asyncio.timeout(DEADLINE_S), open_world(tmp_path, calls_back=calls_back) as world:
        location = await world.replicas[0].ask(CAPABILITY)
        await world.walker.began.wait()

        cancelled = await world.replicas[cancelled_at].client.delete(location)
        await world.walker.stopped.wait()
        told = [await world.callbacks.get()] if calls_back else []
        afterwards = await world.replicas[0].read(location)

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert [(status, frame.error_code) for status, frame in told] == [(204, "cancelled")] * calls_back
    assert (afterwards["status"], afterwards["parts"][0]["status"]) == ("cancelled", "cancelled")


async def test_an_agent_that_knows_no_cancellation_goes_on_and_changes_nothing(tmp_path: Path):
    async def later(_task: TaskFrame) -> web.Response:
        return web.Response(status=202)

    agent = Agent(later, on_cancel=None)
    async with agent.serving() as endpoint, open_gateway(await made_settings(tmp_path)) as gateway:
        await gateway.register("walker", endpoint, CAPABILITY, idempotent=True)
        location = await gateway.ask(CAPABILITY)
        await agent.arrived.wait()
        await gateway.client.delete(location)

        ((task, _),) = agent.posts
        frame = result_of(task, "there").model_dump(mode="json")
        reply = await gateway.client.post(f"/v1/results/{task.task_id}", json=frame)
        afterwards = await gateway.read(location)

    assert (reply.status_code, afterwards["status"], len(agent.posts)) == (204, "cancelled", 1)


async def test_an_agent_whose_attempt_lapsed_is_told_when_another_has_done_it(tmp_path: Path):
    fleet: list[Agent] = []

    async def first_of_all_later(task: TaskFrame) -> web.Response:
        is_first = sum(len(agent.posts) for agent in fleet) == 1
        return web.Response(status=202) if is_first else await at_once(task)

    fleet += [Agent(first_of_all_later), Agent(first_of_all_later)]
    delivery = {"look_every_s": 0.05, "attempt_timeout_s": 1.0}
    settings = await made_settings(tmp_path, delivery=delivery)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(open_gateway(settings))
        for name, agent in zip(("one", "two"), fleet, strict=True):
            endpoint = await stack.enter_async_context(agent.serving())
            await gateway.register(name, endpoint, CAPABILITY, idempotent=True)
        location = await gateway.ask(CAPABILITY)
        async with asyncio.timeout(DEADLINE_S):
            while (await gateway.read(location))["status"] == "open":
                await clock.sleep(0.05)
            slow = next(agent for agent in fleet if agent.posts and not agent.cancels.empty())
            path, _ = await slow.next_cancel()

    ((task, _),) = slow.posts
    assert (path, task.attempt) == (f"/tasks/{task.task_id}", 1)
