"""A dispatcher with an agent that people talk to over several messages, beside the sample agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel

from dispatcher.sdk import Agent
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from tests.conformance.whole import Whole, open_whole

PARCEL, QUOTE = "parcel.track", "promotion.quote"


class Parcel(BaseModel):
    order_number: str


def add_parcels(agent: Agent) -> None:
    """Let the agent track parcels by their order number."""

    @agent.handler(
        PARCEL,
        description=["查询包裹物流位置", "tracks a parcel"],
        examples=["我的包裹到哪里了", "包裹物流查询", "track my parcel", "where is the parcel now"],
        idempotent=True,
    )
    async def track(parcel: Parcel) -> str:
        return f"包裹 {parcel.order_number} 在上海"


@asynccontextmanager
async def talking(agent: Agent, capability: str, store_url: str, folder: Path) -> AsyncIterator[Whole]:
    """With the packaged encoder; Alice and Bob may use the agent's capability, parcels and discounts."""
    granted = (capability, PARCEL, QUOTE)
    grants = {"alice": granted, "bob": granted}
    async with open_whole(store_url, folder, encoder="use", grants=grants) as whole:
        assert whole.running.link is not None
        options = RuntimeOptions(drain_s=0.1)
        async with serving(Runtime(agent, whole.running.link, MemoryInbox(), options=options)):
            yield whole
