"""A task that went out twice over HTTP: what is said of the second sending is not of the first (I2)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from aiohttp import web

from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import TaskFrame
from dispatcher.store.engine import open_engine
from dispatcher.store.tables import attempts
from tests.conformance.channel_world import DEADLINE_S
from tests.conformance.http_fleet import Gateway, made_settings, open_gateway
from tests.conformance.http_world import Agent, result_of

CAPABILITY = "money.send"
clock = SystemClock()


class Busy(Agent):
    """Takes its first task for later, and has no room for anything after that."""

    headers: Mapping[str, str] = MappingProxyType({"Retry-After": "0"})
    """Of its refusals."""

    def __init__(self) -> None:
        super().__init__(self._take)

    async def _take(self, _task: TaskFrame) -> web.Response:
        if len(self.posts) == 1:
            return web.Response(status=202)
        return web.Response(status=503, headers=self.headers)


@dataclass(frozen=True, kw_only=True)
class World:
    """A gateway and two agents that can do the same."""

    gateway: Gateway
    agents: tuple[Busy, Busy]

    async def until_posts(self, count: int) -> list[TaskFrame]:
        """What went out once so many tasks did, and no call goes on."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self._posts()) < count or self.gateway.running.parts.http._running:
                await clock.sleep(0.01)
        return self._posts()

    async def forget_the_sending(self) -> None:
        """The ledger is as if the replica that sent had died before it said so."""
        lost = {
            "status": "due",
            "claimed_by": "a replica that died",
            "claimed_until_ms": 1,
            "published_ms": None,
            "lapse_ms": None,
        }
        sent = attempts.c.status == "published"
        url = self.gateway.running.settings.store_url
        async with asyncio.timeout(DEADLINE_S), open_engine(url) as database:
            while True:
                async with database.writing() as connection:
                    if (await connection.execute(attempts.update().where(sent).values(lost))).rowcount:
                        return
                await clock.sleep(0.01)

    def _posts(self) -> list[TaskFrame]:
        return [task for agent in self.agents for task, _ in agent.posts]


@asynccontextmanager
async def open_world(folder: Path, *, idempotent: bool) -> AsyncIterator[World]:
    settings = await made_settings(folder)
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(open_gateway(settings))
        agents = (Busy(), Busy())
        for name, agent in zip(("one", "two"), agents, strict=True):
            endpoint = await stack.enter_async_context(agent.serving())
            await gateway.register(name, endpoint, CAPABILITY, idempotent=idempotent)
        yield World(gateway=gateway, agents=agents)


@pytest.mark.parametrize("idempotent", [True, False])
async def test_only_what_may_run_twice_goes_elsewhere_when_its_second_sending_finds_no_room(
    tmp_path: Path, idempotent: bool
):
    async with open_world(tmp_path, idempotent=idempotent) as world:
        location = await world.gateway.ask(CAPABILITY)
        (first,) = await world.until_posts(1)
        await world.forget_the_sending()
        await world.until_posts(3 if idempotent else 2)

        result = result_of(first, "sent").model_dump(mode="json")
        called_back = await world.gateway.client.post(f"/v1/results/{first.task_id}", json=result)
        (part,) = (await world.gateway.read(location))["parts"]

    assert called_back.status_code == 204
    assert (part["status"], part["result"]["text"]) == ("completed", "sent")
    assert part["attempts"] == (2 if idempotent else 1)
    assert sorted(len(agent.posts) for agent in world.agents) == ([1, 2] if idempotent else [0, 2])


async def test_a_second_sending_that_may_have_run_does_not_end_what_runs_from_the_first(tmp_path: Path):
    async with open_world(tmp_path, idempotent=False) as world:
        for agent in world.agents:
            agent.headers = {}
        location = await world.gateway.ask(CAPABILITY)
        (first,) = await world.until_posts(1)
        await world.forget_the_sending()
        await world.until_posts(2)

        result = result_of(first, "sent").model_dump(mode="json")
        await world.gateway.client.post(f"/v1/results/{first.task_id}", json=result)
        (part,) = (await world.gateway.read(location))["parts"]

    assert (part["status"], part["result"]["text"], part["attempts"]) == ("completed", "sent", 1)
