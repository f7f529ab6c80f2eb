"""A gateway with keys, an agent behind a `DirectGate`, and callers, all over real HTTP on loopback."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.cli.serve import listening, serve_app
from dispatcher.clock import SystemClock
from dispatcher.identifiers import CallerId, Capability, new_id
from dispatcher.registry.access import Role
from dispatcher.registry.api_key import new_key
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.client import Client
from dispatcher.sdk.direct import DirectGate, GateRules
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from dispatcher.sdk.task_view import TaskView
from dispatcher.settings import Settings, load_settings
from dispatcher.store.access import SqlAccess
from dispatcher.store.engine import open_engine
from tests.conformance.gate_server import serving

QUERY, CANCEL = "order.query", "order.cancel"
CREDENTIAL = "only-the-dispatcher-has-this"


@dataclass
class Shop:
    """An agent whose runs are counted."""

    runs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.agent = Agent("shop", max_load=4)
        text, examples = "Handles orders.", ["where is my order"]
        self.agent.handler(QUERY, description=text, examples=examples, idempotent=True)(self.run)
        self.agent.handler(CANCEL, description=text, examples=examples)(self.run)

    def run(self, task: TaskView) -> str:
        self.runs.append(task.text)
        return f"done {len(self.runs)} for {task.user_id}"


class MovableClock(SystemClock):
    """The machine's clock, as far ahead as a test says."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@dataclass(frozen=True, kw_only=True)
class Direct:
    """Everything, and a way to be rid of the gateway."""

    running: Running
    url: str
    keys: dict[str, str]
    shop: Shop
    gate: DirectGate
    clock: MovableClock
    endpoint: str
    gateway: AsyncExitStack

    async def kill_gateway(self) -> None:
        """From now on nobody listens where the gateway was."""
        await self.gateway.aclose()

    async def set_grants(self, caller: str, *capabilities: str) -> None:
        """Replace a caller's grants, known to the gateway at once."""
        async with open_engine(self.running.settings.store_url) as database:
            await SqlAccess(database).set_grants(
                CallerId(caller), frozenset(Capability(name) for name in capabilities)
            )
        await self.running.parts.access.refresh()

    async def learn_keys(self, url: str | None = None) -> None:
        """The agent asks for its keys, at another replica if one is named."""
        async with Client(url or self.url, self.keys["shop"]) as itself:
            self.gate.learn(await itself.direct_keys("shop"))

    async def register(self, **changes: Any) -> dict[str, Any]:
        """The agent registers, with these changes of its declaration; its lease."""
        declaration = {**self.gate.declaration(self.endpoint).to_json(), **changes}
        frame = {
            "agent_id": "shop",
            "instance_name": "one",
            "instance_id": new_id(),
            "inbox": "sqlite",
            "inbox_id": "the shop's",
            "declaration": declaration,
        }
        lease: dict[str, Any] = (await self._post("/v1/agents", frame)).json()
        return lease

    async def beat(self, lease: dict[str, Any], **told: Any) -> None:
        """The agent tells how it is."""
        frame = {"instance_id": lease["instance_id"], "lease_id": lease["lease_id"], **told}
        await self._post("/v1/agents/shop/heartbeat", frame)

    async def _post(self, path: str, frame: dict[str, Any]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.keys['shop']}"}
        async with httpx2.AsyncClient(base_url=self.url, headers=headers) as client:
            reply = await client.post(path, json=frame)
        return reply.raise_for_status()


@asynccontextmanager
async def open_direct(store_url: str, folder: Path, *, keep_s: float = 3600.0) -> AsyncIterator[Direct]:
    """Alice may do both things, Bob nothing; the shop is registered and has its keys."""
    settings = load_settings(
        data_dir=folder,
        store={"url": store_url},
        encoder={"name": "hashing"},
        http={"allowed_networks": ["127.0.0.0/8"], "credentials": {"shop": CREDENTIAL}},
        delivery={"look_every_s": 0.05},
    )
    await upgrade_storage(settings)
    keys = await _keys(settings)
    shop, clock = Shop(), MovableClock()
    async with AsyncExitStack() as stack:
        inbox = await SqliteInbox.open(folder / "shop.inbox")
        stack.push_async_callback(inbox.aclose)
        rules = GateRules(keep_s=keep_s, drain_s=0.1)
        gate = DirectGate(shop.agent, inbox, credential=CREDENTIAL, rules=rules, clock=clock)
        await stack.enter_async_context(gate)
        endpoint = await stack.enter_async_context(serving(gate))
        gateway = await stack.enter_async_context(AsyncExitStack())
        running, url = await gateway.enter_async_context(gateway_of(settings))
        world = Direct(
            running=running,
            url=url,
            keys=keys,
            shop=shop,
            gate=gate,
            clock=clock,
            endpoint=endpoint,
            gateway=gateway,
        )
        await world.register()
        await world.learn_keys()
        yield world


@asynccontextmanager
async def gateway_of(settings: Settings) -> AsyncIterator[tuple[Running, str]]:
    """A replica behind a real server."""
    with listening("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()[:2]
        async with open_dispatcher(settings) as running, asyncio.TaskGroup() as group:
            group.create_task(serve_app(running, listener))
            try:
                yield running, f"http://{host}:{port}"
            finally:
                running.stop()


@asynccontextmanager
async def dropping() -> AsyncIterator[str]:
    """A server that reads what it is sent and hangs up: nobody knows what became of it."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


async def _keys(settings: Settings) -> dict[str, str]:
    holders: Sequence[tuple[Role, str]] = (
        (Role.CALLER, "alice"),
        (Role.CALLER, "bob"),
        (Role.AGENT, "shop"),
    )
    texts = {}
    async with open_engine(settings.store_url) as database:
        access = SqlAccess(database)
        for role, subject in holders:
            key, texts[subject] = new_key(role, subject)
            await access.add_key(key)
        await access.set_grants(CallerId("alice"), frozenset({Capability(QUERY), Capability(CANCEL)}))
    return texts
