"""A whole dispatcher whose menders sometimes fail, lose their answers or take no more work."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.protocol.link import Delivery, Link
from dispatcher.sdk import Agent, BusinessError, MemoryInbox, TaskView
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.store.access import SqlAccess
from dispatcher.store.engine import open_engine
from dispatcher.store.tables import tasks
from tests.conformance.whole import Whole, open_whole

MEND, POLISH = Capability("thing.mend"), Capability("thing.polish")
DEADLINE_S = 20.0


class Mender:
    """An agent that counts what it begins. Mending may take `limit_s`, polishing a second."""

    def __init__(self, name: str, *, idempotent: bool = True, limit_s: float = 30.0, places: int = 8) -> None:
        self.is_broken = False
        self.keys: list[str] = []
        self.agent = Agent(name, max_load=places)
        register = self.agent.handler(
            MEND, description="mends things", idempotent=idempotent, timeout_s=limit_s
        )
        register(self.mend)
        register = self.agent.handler(POLISH, description="polishes things", idempotent=True, timeout_s=1.0)
        register(self.mend)
        self._loop = asyncio.get_running_loop()
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    async def mend(self, task: TaskView) -> str:
        self.keys.append(task.idempotency_key)
        self._loop.call_soon_threadsafe(self.began.set)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.may_end.wait(), self._loop))
        if self.is_broken:
            raise BusinessError("no glue", code="no_glue")
        return f"mended by {self.agent.agent_id}"


class LossyLink:
    """A link that loses results while it `loses`, and says that they were stored."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.loses = True

    async def call(self, frame: bytes) -> bytes:
        return await self._link.call(frame)

    async def beat(self, frame: bytes) -> None:
        await self._link.beat(frame)

    async def publish_result(self, frame: bytes) -> None:
        if not self.loses:
            await self._link.publish_result(frame)

    async def publish_signal(self, frame: bytes) -> None:
        await self._link.publish_signal(frame)

    def controls(self, agent_id: AgentId) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._link.controls(agent_id)

    def deliveries(
        self, agent_id: AgentId, prefetch: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        return self._link.deliveries(agent_id, prefetch)


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """The dispatcher with what a caller and an operator do."""

    whole: Whole
    store_url: str

    @property
    def link(self) -> Link:
        """The agents' way to it."""
        assert self.whole.running.link is not None
        return self.whole.running.link

    @asynccontextmanager
    async def employing(
        self, *menders: Mender, link: Link | None = None, inbox: Inbox | None = None
    ) -> AsyncIterator[None]:
        """These agents are at work inside the block."""
        if not menders:
            yield
            return
        first, *others = menders
        options = RuntimeOptions(drain_s=0.1)
        async with (
            serving(Runtime(first.agent, link or self.link, inbox or MemoryInbox(), options=options)),
            self.employing(*others, link=link),
        ):
            yield

    async def ask(self, capability: Capability = MEND) -> httpx2.Response:
        """Alice wants something done and waits."""
        return await self.whole.alice.post("/v1/chat", json={"message": "do it", "capability": capability})

    async def hand_in(self) -> httpx2.Response:
        """Alice wants something mended and doesn't wait."""
        body = {"message": "mend it", "capability": MEND}
        return await self.whole.alice.post("/v1/chat", json=body, headers={"Prefer": "respond-async"})

    async def letters(self, query: str = "") -> list[dict[str, Any]]:
        """What is dead."""
        response = await self.whole.admin.get(f"/v1/dead{query}")
        assert response.status_code == 200, response.text
        letters: list[dict[str, Any]] = response.json()["dead_letters"]
        return letters

    async def letter(self, cause: str) -> dict[str, Any]:
        """The only dead letter, as soon as there is one; of this cause."""
        async with asyncio.timeout(DEADLINE_S):
            while not await self.letters():
                await SystemClock().sleep(0.02)
        (letter,) = await self.letters(f"?cause={cause}")
        assert await self.letters() == [letter]
        return letter

    async def retry(
        self, letter: dict[str, Any], to: str | None = None, *, key: str | None = None
    ) -> httpx2.Response:
        """Have it done again; with a key of the operator's own, or without."""
        path, headers = f"/v1/dead/{letter['dead_id']}/retry", {"Idempotency-Key": key} if key else {}
        return await self.whole.admin.post(path, json={"agent_id": to}, headers=headers)

    async def ended(self, accepted: httpx2.Response) -> dict[str, Any]:
        """The accepted request as its caller reads it once it has ended."""
        assert accepted.status_code == 202, accepted.text
        async with asyncio.timeout(DEADLINE_S):
            while True:
                response = await self.whole.alice.get(f"/v1/requests/{accepted.json()['request_id']}")
                document: dict[str, Any] = response.json()
                if document["status"] != "open":
                    return document
                await SystemClock().sleep(0.02)

    async def let_pass(self, milliseconds: int) -> None:
        """So much time has passed since the tasks there are ended."""
        earlier = tasks.c.finished_ms - milliseconds
        async with open_engine(self.store_url) as database, database.writing() as connection:
            await connection.execute(tasks.update().values(finished_ms=earlier))

    async def grant(self, *capabilities: Capability) -> None:
        """From now on alice may use these alone."""
        async with open_engine(self.store_url) as database:
            await SqlAccess(database).set_grants(CallerId("alice"), frozenset(capabilities))
        await self.whole.running.parts.access.refresh()


@asynccontextmanager
async def open_workshop(store_url: str, folder: Path) -> AsyncIterator[Workshop]:
    """Without any mender yet."""
    granted: Sequence[str] = (MEND, POLISH)
    async with open_whole(store_url, folder, grants={"alice": granted, "bob": granted}) as whole:
        yield Workshop(whole=whole, store_url=store_url)
