"""Gateways in development mode for agents over HTTP, each behind a real server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from dispatcher.assembly.running import Running
from dispatcher.assembly.storage import upgrade_storage
from dispatcher.settings import Settings, load_settings
from tests.conformance.direct_world import gateway_of

LATER = {"Prefer": "respond-async"}


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """One replica and a client of it."""

    running: Running
    client: httpx2.AsyncClient

    async def register(self, name: str, endpoint: str, capability: str, *, idempotent: bool) -> None:
        """An agent that can do one thing."""
        able = {"name": capability, "descriptions": ["does something"], "idempotent": idempotent}
        declaration = {"channel": "http", "endpoint": endpoint, "capabilities": [able]}
        identity = {"agent_id": name, "instance_name": "main", "instance_id": name, "inbox": "sqlite"}
        reply = await self.client.post("/v1/agents", json={**identity, "declaration": declaration})
        assert reply.status_code in (200, 201), reply.text

    async def ask(self, capability: str) -> str:
        """Where the accepted request is."""
        body = {"message": "do it", "capability": capability}
        accepted = await self.client.post("/v1/chat", json=body, headers=LATER)
        assert accepted.status_code == 202, accepted.text
        return str(accepted.headers["Location"])

    async def read(self, location: str) -> dict[str, Any]:
        """The request as it stands."""
        document: dict[str, Any] = (await self.client.get(location)).json()
        return document


async def made_settings(folder: Path, **groups: Mapping[str, Any]) -> Settings:
    """With a fresh SQLite ledger."""
    usual: dict[str, Any] = {
        "data_dir": folder,
        "store": {"url": f"sqlite:///{folder / 'ledger.db'}"},
        "encoder": {"name": "hashing"},
        "auth": {"development": True},
        "delivery": {"look_every_s": 0.05, "delay_min_ms": 1, "delay_max_ms": 5},
    }
    settings = load_settings(**{**usual, **groups})
    await upgrade_storage(settings)
    return settings


@asynccontextmanager
async def open_gateway(settings: Settings) -> AsyncIterator[Gateway]:
    """One more replica."""
    async with gateway_of(settings) as (running, url), httpx2.AsyncClient(base_url=url) as client:
        yield Gateway(running=running, client=client)
