"""Commands that work on the database: schema, keys, grants, retention."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dispatcher.assembly.storage import open_storage, upgrade_storage
from dispatcher.cli.names import read_caller, read_capabilities, read_role, read_subject, read_user
from dispatcher.cli.terminal import folding_table, terminal, warn
from dispatcher.errors import ConfigurationError
from dispatcher.registry.api_key import new_key
from dispatcher.settings import Settings, load_settings
from dispatcher.store.access import SqlAccess
from dispatcher.store.agents import SqlAgents
from dispatcher.store.engine import Database
from dispatcher.store.retention import forget, prune


@asynccontextmanager
async def _storage(config: Path | None) -> AsyncIterator[tuple[Settings, Database]]:
    settings = load_settings(config)
    async with open_storage(settings) as database:
        yield settings, database


async def upgrade_schema(config: Path | None) -> None:
    """Run the migrations that are missing."""
    await upgrade_storage(load_settings(config))
    terminal().print("the schema is current")


async def create(config: Path | None, *, role: str, subject: str) -> None:
    """Store a new key and print its text."""
    holder = read_role(role)
    key, text = new_key(holder, read_subject(holder, subject))
    async with _storage(config) as (_, database):
        await SqlAccess(database).add_key(key)
    terminal().print(text)


async def list_all(config: Path | None) -> None:
    """Print every key's public id, role and subject."""
    table = folding_table("key id", "role", "subject", "revoked")
    async with _storage(config) as (_, database):
        for key in await SqlAccess(database).keys():
            table.add_row(key.key_id, key.role, key.subject, "yes" if key.revoked else "no")
    terminal().print(table)


async def revoke(config: Path | None, key_id: str) -> None:
    """End a key for good."""
    async with _storage(config) as (_, database):
        if not key_id.isascii() or not await SqlAccess(database).revoke_key(key_id):
            raise ConfigurationError(f"there is no key with the id {key_id!r}")
    terminal().print(f"{key_id} is revoked")


async def grant(config: Path | None, caller: str, capabilities: list[str]) -> None:
    """Replace a caller's grants; say which of them nobody can serve now, for it may be a misspelling."""
    named, wanted = read_caller(caller), read_capabilities(capabilities)
    async with _storage(config) as (_, database):
        await SqlAccess(database).set_grants(named, wanted)
        registered = (await SqlAgents(database).load()).agents
    declared = {capability.name for agent in registered for capability in agent.declaration.capabilities}
    if undeclared := sorted(wanted - declared):
        warn(f"no registered agent declares {', '.join(undeclared)}")
    terminal().print(f"{caller} may use: {', '.join(sorted(wanted)) or 'nothing'}")


async def show(config: Path | None, caller: str) -> None:
    """Print a caller's grants, one a line."""
    named = read_caller(caller)
    async with _storage(config) as (_, database):
        for name in sorted(await SqlAccess(database).grants(named)):
            terminal().print(name)


async def prune_rows(config: Path | None) -> None:
    """Delete what is older than its retention; print how many rows of each table."""
    async with _storage(config) as (settings, database):
        kept = settings.retention
        days = {
            "requests": kept.requests_days,
            "decisions": kept.decisions_days,
            "results": kept.results_days,
            "sessions": kept.sessions_days,
            "dead_frames": kept.dead_frames_days,
        }
        for table, count in (await prune(database, days)).items():
            terminal().print(f"{table}: {count}")


async def forget_user(config: Path | None, *, user: str, caller: str | None) -> None:
    """Remove one user's ended requests and what hangs on them; say what still runs."""
    known, named = read_user(user), read_caller(caller) if caller is not None else None
    async with _storage(config) as (_, database):
        forgotten = await forget(database, known, caller=named)
    terminal().print(f"requests deleted: {forgotten.deleted}")
    if forgotten.still_open:
        terminal().print(f"still running, run this again later: {forgotten.still_open}")
