"""What a PostgreSQL that refuses to work for a while does to a ledger: nothing that lasts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from dispatcher.errors import UnavailableError
from tests.conformance.store.ledger_requests import accepted, replica

LIMIT_S = 40


@asynccontextmanager
async def operator(url: str) -> AsyncIterator[tuple[asyncpg.Connection, str]]:
    """A connection to the server beside the ledger's database, and that database's name."""
    parts = urlsplit(url)
    connection = await asyncpg.connect(parts._replace(path="/postgres").geturl())
    try:
        yield connection, parts.path.removeprefix("/")
    finally:
        await connection.close()


async def end_sessions(server: asyncpg.Connection, name: str) -> None:
    await server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)


async def test_a_server_that_became_read_only_is_left_as_soon_as_another_takes_over(shared_postgres: str):
    async with (
        asyncio.timeout(LIMIT_S),
        operator(shared_postgres) as (server, name),
        replica(shared_postgres) as ledger,
    ):
        await accepted(ledger)
        await server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await end_sessions(server, name)

        for _ in range(3):
            with pytest.raises(UnavailableError, match="25006"):
                await accepted(ledger)
        # Only new sessions are writable again: the ledger has to give up those that it has.
        await server.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")

        await accepted(ledger)


async def test_a_database_that_is_gone_for_a_while_is_unavailable_and_then_used_again(shared_postgres: str):
    async with (
        asyncio.timeout(LIMIT_S),
        operator(shared_postgres) as (server, name),
        replica(shared_postgres) as ledger,
    ):
        state = await accepted(ledger)
        await server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await end_sessions(server, name)
        await server.execute(f"ALTER DATABASE {name} RENAME TO {name}_moved")

        with pytest.raises(UnavailableError, match="3D000"):
            await accepted(ledger)
        with pytest.raises(UnavailableError, match="3D000"):
            await ledger.read(state.request.request_id)
        await server.execute(f"ALTER DATABASE {name}_moved RENAME TO {name}")
        await server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

        assert await ledger.read(state.request.request_id) == state
