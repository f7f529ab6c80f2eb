"""Long tasks of an agent over HTTP: it takes them with a 202 and keeps its lease by posting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web

from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import TaskFrame
from tests.conformance.http_world import Agent, result_of
from tests.conformance.whole import Whole, open_whole

DELIVERY = {"long_after_s": 1.0, "lease_s": 1.0, "attempt_timeout_s": 1.0}
CAPABILITY = "time.tell"
clock = SystemClock()


@dataclass(frozen=True)
class Poster:
    """Posts frames about one task, as the agent that has it."""

    gateway: httpx2.AsyncClient
    task: TaskFrame

    async def signal(self, kind: str, **fields: object) -> httpx2.Response:
        named = self.task.model_dump(include={"request_id", "task_id", "attempt", "token"})
        return await self._post({**named, "type": kind, "instance_id": "agent-1", **fields})

    async def result(self, text: str) -> httpx2.Response:
        return await self._post(result_of(self.task, text).model_dump(mode="json"))

    async def _post(self, frame: dict[str, object]) -> httpx2.Response:
        return await self.gateway.post(f"/v1/results/{self.task.task_id}", json=frame)


@asynccontextmanager
async def working(whole: Whole, work: Callable[[Poster], Awaitable[None]]) -> AsyncIterator[Agent]:
    """The agent `clock`, registered: it answers 202 and works beside that."""
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        begun: list[asyncio.Task[None]] = []

        async def take(task: TaskFrame) -> web.Response:
            begun.append(group.create_task(work(Poster(whole.agent, task))))  # type: ignore[arg-type]
            return web.Response(status=202)

        agent = Agent(take)
        endpoint = await stack.enter_async_context(agent.serving())
        registered = await whole.agent.post("/v1/agents", json=registration(endpoint))
        assert registered.status_code in (200, 201), registered.text
        yield agent
        for task in begun:
            task.cancel()


def registration(endpoint: str) -> dict[str, Any]:
    capability = {
        "name": CAPABILITY,
        "descriptions": ["tells the time"],
        "idempotent": False,
        "timeout_ms": 30_000,
    }
    return {
        "agent_id": "clock",
        "instance_name": "one",
        "instance_id": "agent-1",
        "inbox": "sqlite",
        "declaration": {
            "channel": "http",
            "endpoint": endpoint,
            "leases": True,
            "capabilities": [capability],
        },
    }


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    async with open_whole(url, tmp_path, delivery=DELIVERY) as whole:
        yield whole


async def test_a_renewed_task_outlives_its_lease_and_its_first_result_counts(whole: Whole):
    replies: list[int] = []

    async def work(poster: Poster) -> None:
        replies.append((await poster.signal("started")).status_code)
        for beat in range(12):
            await clock.sleep(0.25)
            replies.append((await poster.signal("renew")).status_code)
            replies.append((await poster.signal("progress", fraction=beat / 12)).status_code)
        replies.append((await poster.signal("partial", sequence=0, result={"text": "It "})).status_code)
        replies.append((await poster.result("It is noon.")).status_code)

    async with working(whole, work) as agent:
        answer = await whole.chat("what time is it", capability=CAPABILITY)

    assert (answer["status"], answer["answer"]) == ("completed", "It is noon.")
    assert set(replies) == {204}
    assert len(agent.posts) == 1
    assert agent.posts[0][0].lease_ms == 1_000


async def test_a_task_that_is_not_renewed_any_more_ends_soon_and_nobody_knows_how(whole: Whole):
    async def work(poster: Poster) -> None:
        await poster.signal("started")
        await poster.signal("renew")

    began = clock.monotonic()
    async with working(whole, work) as agent:
        answer = await whole.chat("what time is it", capability=CAPABILITY)

    (part,) = answer["parts"]
    assert part["status"] == "outcome_unknown"
    assert clock.monotonic() - began < 8, "lease and attempt timeout are a second each"
    assert len(agent.posts) == 1


async def test_a_signal_with_a_wrong_token_is_refused_and_keeps_no_lease(whole: Whole):
    replies: list[tuple[int, str]] = []

    async def work(poster: Poster) -> None:
        await poster.signal("started")
        for _ in range(20):
            reply = await poster.signal("renew", token="a-token-of-somebody-else")  # noqa: S106
            replies.append((reply.status_code, reply.json()["code"]))
            await clock.sleep(0.2)

    async with working(whole, work):
        answer = await whole.chat("what time is it", capability=CAPABILITY)

    assert answer["parts"][0]["status"] == "outcome_unknown"
    assert set(replies) == {(403, "result_refused")}
