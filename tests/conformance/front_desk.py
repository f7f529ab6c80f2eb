"""A dispatcher with somebody who tracks parcels and somebody who takes anything, beside the sample agents."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dispatcher.protocol.link import Link
from dispatcher.sdk import Agent, TaskView
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from tests.conformance.whole import Whole, open_whole

ORDER, QUOTE, PARCEL, ANYTHING = "order.query", "promotion.quote", "parcel.track", "ask.anything"
UNCLEAR = "我买的东西到哪里了"
"""As near to parcels as to orders."""
NONSENSE = "给我讲个笑话"


def courier() -> Agent:
    """Tracks parcels, and takes whatever it is given."""
    agent = Agent("courier")

    @agent.handler(
        PARCEL,
        description=["查询包裹物流位置", "tracks a parcel"],
        examples=["我的包裹到哪里了", "包裹物流查询", "track my parcel", "where is the parcel now"],
        idempotent=True,
    )
    async def track(task: TaskView) -> str:
        return f"包裹：{task.text}"

    return agent


def receptionist() -> Agent:
    agent = Agent("receptionist")

    @agent.handler(ANYTHING, description="zzz", idempotent=True)
    async def take(task: TaskView) -> str:
        return f"我来处理：{task.text}"

    return agent


@asynccontextmanager
async def opened(
    store_url: str, folder: Path, *, encoder: str = "hashing", **routing: object
) -> AsyncIterator[Whole]:
    """Alice may use everything, Bob no parcels."""
    grants = {"alice": (ORDER, QUOTE, PARCEL, ANYTHING), "bob": (ORDER, QUOTE)}
    async with open_whole(store_url, folder, encoder=encoder, grants=grants, routing=routing) as whole:
        link = whole.running.link
        assert link is not None
        async with serving(_runtime(courier(), link)), serving(_runtime(receptionist(), link)):
            yield whole


def _runtime(agent: Agent, link: Link) -> Runtime:
    return Runtime(agent, link, MemoryInbox(), options=RuntimeOptions(drain_s=0.1))


def only(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    (part,) = answer["parts"]
    assert isinstance(part, dict)
    return part
