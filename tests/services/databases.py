"""Databases of a test's own on a PostgreSQL server."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg


@asynccontextmanager
async def fresh_database(server: str, template: str = "template0") -> AsyncIterator[str]:
    """The URL of a copy of `template`, to which nobody may be connected; dropped afterwards."""
    name = f"test_{secrets.token_hex(8)}"
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.close()
