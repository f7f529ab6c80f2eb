"""What an agent does without unless it asks for it: loaded by name, when it is asked for.

The caller's client needs aiohttp, a third of an agent's memory; asyncpg and uvloop come with extras;
an agent that remembers nothing on disk needs no SQLite.
"""

import asyncio
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dispatcher.errors import ConfigurationError
from dispatcher.sdk.inbox import Inbox

HOMES = {
    "CallError": "client",
    "Client": "client",
    "DirectGate": "direct",
    "DirectRules": "direct_calls",
    "Event": "client_stream",
    "PostgresInbox": "postgres_inbox",
    "RequestAnswer": "request_answer",
    "SqliteInbox": "sqlite_inbox",
}
"""Public names of the SDK and the modules they are in."""


def public(name: str) -> Any:  # noqa: ANN401 - whatever has that name
    """The public thing of that name; raises AttributeError where there is none."""
    if name not in HOMES:
        raise AttributeError(f"module 'dispatcher.sdk' has no attribute {name!r}")
    return getattr(import_module(f"dispatcher.sdk.{HOMES[name]}"), name)


def new_loop() -> asyncio.AbstractEventLoop:
    """A new event loop: uvloop's where that is installed."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    return loop


async def sqlite_inbox(file: Path) -> Inbox:
    """An opened `SqliteInbox`."""
    inbox: Inbox = await public("SqliteInbox").open(file)
    return inbox


async def postgres_inbox(url: str, agent_id: str) -> Inbox:
    """An opened `PostgresInbox`; raises `ConfigurationError` without its extra or its database."""
    if find_spec("asyncpg") is None:
        raise ConfigurationError(
            "the inbox in PostgreSQL needs `pip install agent-reach-dispatcher[postgres-inbox]`"
        )
    inbox: Inbox = await public("PostgresInbox").open(url, agent_id)
    return inbox
