"""A whole dispatcher with keys, on any database, driven over HTTP by a real client."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import httpx2
from pydantic import BaseModel

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.identifiers import CallerId, Capability
from dispatcher.registry.access import Role
from dispatcher.registry.api_key import new_key
from dispatcher.sdk import Agent, From, Reply, TaskView
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.settings import Settings, load_settings
from dispatcher.store.access import SqlAccess
from dispatcher.store.engine import open_engine
from dispatcher.store.history import Past, past_decisions

LATEST_MS = 2**62
GRANTED = (
    "order.query",
    "promotion.quote",
    "secret.slow",
    "broken.thing",
    "staging.thing",
    "time.tell",
)
GRANTS = {"alice": GRANTED, "bob": ("promotion.quote",)}


class Order(BaseModel):
    amount: float


class Question(BaseModel):
    amount: Annotated[float | None, From("order.query/amount")] = None


class Shop:
    """Sample agents whose runs are counted; `gate` holds back the slow one."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.gate = asyncio.Event()
        self.agents = [self._order(), self._promotion(), self._slow(), self._broken(), self._staging()]

    def _order(self) -> Agent:
        agent = Agent("order")

        @agent.handler(
            "order.query",
            description=["查询订单发货状态", "looks up the order status"],
            examples=["我的订单发货了吗", "where is my order", "order status please", "订单到哪一步了"],
            idempotent=True,
        )
        async def query(task: TaskView) -> Reply[Order]:
            self.runs.append(task.text)
            return Reply(text="订单已发货", data=Order(amount=2999.0))

        return agent

    def _promotion(self) -> Agent:
        agent = Agent("promotion")

        @agent.handler(
            "promotion.quote",
            description=["计算优惠折扣", "computes discounts and coupons"],
            examples=["有什么优惠折扣", "any discounts or coupons", "优惠券怎么用", "coupon for me"],
            idempotent=True,
        )
        async def quote(question: Question, task: TaskView) -> str:
            return f"优惠后 {question.amount}"

        return agent

    def _slow(self) -> Agent:
        agent = Agent("slow")

        @agent.handler("secret.slow", description="waits for the bell", idempotent=True)
        async def wait() -> str:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.gate.wait(), self._loop))
            return "rung"

        self._loop = asyncio.get_running_loop()
        return agent

    def _broken(self) -> Agent:
        agent = Agent("broken")

        @agent.handler("broken.thing", description="always breaks", idempotent=True)
        async def fail() -> str:
            raise RuntimeError("password=hunter2")

        return agent

    def _staging(self) -> Agent:
        agent = Agent("staging", environment="staging")

        @agent.handler("staging.thing", description="only for rehearsals", idempotent=True)
        async def rehearse() -> str:
            return "rehearsed"

        return agent


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A running dispatcher, its sample agents and one HTTP client per key."""

    running: Running
    shop: Shop
    alice: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    agent: httpx2.AsyncClient
    admin: httpx2.AsyncClient

    async def chat(self, message: str, **fields: Any) -> Mapping[str, Any]:
        """Alice's chat; its answer."""
        response = await self.alice.post("/v1/chat", json={"message": message, **fields})
        assert response.status_code == 200, response.text
        answer: Mapping[str, Any] = response.json()
        return answer

    async def past_decisions(self) -> Sequence[Past]:
        """The first decisions of all requests, read from the database beside the running dispatcher."""
        async with open_engine(self.running.settings.store_url) as database:
            return [past async for past in past_decisions(database, 0, LATEST_MS)]


@asynccontextmanager
async def open_whole(
    store_url: str,
    folder: Path,
    *,
    encoder: str = "hashing",
    grants: Mapping[str, Sequence[str]] = MappingProxyType(GRANTS),
    delivery: Mapping[str, float] = MappingProxyType({}),
    **groups: Any,
) -> AsyncIterator[Whole]:
    """Everything in one process: the database at `store_url`, the in-process channel, keys on.

    `groups` are further groups of settings.
    """
    settings = load_settings(
        data_dir=folder,
        store={"url": store_url},
        encoder={"name": encoder},
        http={"allowed_networks": ["127.0.0.0/8"]},
        delivery={"look_every_s": 0.05, "delay_min_ms": 1, "delay_max_ms": 5, **delivery},
        **groups,
    )
    await upgrade_storage(settings)
    keys = await _keys(settings, grants)
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(open_dispatcher(settings))
        assert running.link is not None
        shop = Shop()
        for agent in shop.agents:
            runtime = Runtime(agent, running.link, MemoryInbox(), options=RuntimeOptions(drain_s=0.1))
            await stack.enter_async_context(serving(runtime))
        alice, bob, clock, admin = [await stack.enter_async_context(_client(running, key)) for key in keys]
        yield Whole(running=running, shop=shop, alice=alice, bob=bob, agent=clock, admin=admin)


def _client(running: Running, key: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=running.app)
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(transport=transport, base_url="http://dispatcher", headers=headers, timeout=30)


async def _keys(settings: Settings, grants: Mapping[str, Sequence[str]]) -> list[str]:
    holders = [(Role.CALLER, "alice"), (Role.CALLER, "bob"), (Role.AGENT, "clock"), (Role.ADMIN, "root")]
    texts = []
    async with open_engine(settings.store_url) as database:
        access = SqlAccess(database)
        for role, subject in holders:
            key, text = new_key(role, subject)
            await access.add_key(key)
            texts.append(text)
        for caller, names in grants.items():
            await access.set_grants(CallerId(caller), frozenset(map(Capability, names)))
    return texts
