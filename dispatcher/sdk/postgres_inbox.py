"""An inbox in a PostgreSQL database of the agents' own, shared by all instances of an agent.

The only kind that lets an agent run as several instances. Needs the extra `postgres-inbox`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import asyncpg

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.sdk.inbox import KEEP_S, Claim, Inbox, Judgement, Record, Untold, judge

_PRUNE_EVERY = 256
_SCHEMA_LOCK = 7_203_114_859_660_351
"""Of an advisory lock: two processes that create one table at the same moment fail without it."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS agent_inbox (
    agent_id text NOT NULL,
    key text NOT NULL,
    owner text NOT NULL,
    attempt integer NOT NULL,
    expires_at double precision NOT NULL,
    touched_at double precision NOT NULL,
    outcome bytea,
    retryable boolean NOT NULL,
    failed boolean NOT NULL,
    envelope bytea,
    PRIMARY KEY (agent_id, key)
);
CREATE INDEX IF NOT EXISTS agent_inbox_touched_at ON agent_inbox (touched_at);
CREATE INDEX IF NOT EXISTS agent_inbox_untold ON agent_inbox (agent_id) WHERE envelope IS NOT NULL;
CREATE TABLE IF NOT EXISTS agent_inbox_identity (
    agent_id text PRIMARY KEY,
    inbox_id text NOT NULL
);
"""
_NOW = "extract(epoch FROM clock_timestamp())::double precision"
"""The database's clock in seconds since 1970, at the statement and not at its transaction's begin."""
_COLUMNS = "owner, attempt, expires_at, outcome, retryable, failed, envelope"
_INSERT = f"""
INSERT INTO agent_inbox (agent_id, key, touched_at, {_COLUMNS})
VALUES ($1, $2, {_NOW}, $3, $4, {_NOW} + $5, $6, $7, $8, $9)
ON CONFLICT (agent_id, key) DO NOTHING RETURNING key
"""  # noqa: S608 - constants
_UPDATE = f"""
UPDATE agent_inbox SET touched_at = {_NOW}, owner = $3, attempt = $4, expires_at = {_NOW} + $5,
outcome = $6, retryable = $7, failed = $8, envelope = $9 WHERE agent_id = $1 AND key = $2
"""  # noqa: S608 - constants
_LOCK = f"""
SELECT {_COLUMNS}, {_NOW} AS now FROM agent_inbox WHERE agent_id = $1 AND key = $2 FOR UPDATE
"""  # noqa: S608 - constants
_HOLD = f"""
UPDATE agent_inbox SET touched_at = {_NOW}, expires_at = {_NOW} + $4
WHERE agent_id = $1 AND key = $2 AND owner = $3 AND outcome IS NULL
"""  # noqa: S608 - constants
_FINISH = f"""
UPDATE agent_inbox SET touched_at = {_NOW}, outcome = $4, retryable = $5, failed = $6
WHERE agent_id = $1 AND key = $2 AND owner = $3 AND outcome IS NULL
"""  # noqa: S608 - constants
_TOLD = "UPDATE agent_inbox SET envelope = NULL WHERE agent_id = $1 AND key = $2 AND owner = $3"
_UNTOLD = f"""
SELECT key, owner, envelope, outcome FROM agent_inbox
WHERE agent_id = $1 AND envelope IS NOT NULL AND owner <> $2 AND expires_at <= {_NOW}
ORDER BY touched_at LIMIT 100
"""  # noqa: S608 - constants
_PRUNE = f"DELETE FROM agent_inbox WHERE touched_at < {_NOW} - $1"  # noqa: S608 - constants
_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""`TimeoutError` is an OSError."""


class PostgresInbox(Inbox):
    """A new key is claimed by one INSERT, a known one is judged and written under its row's lock.

    Every write is durable before the call returns (synchronous_commit on). Rows are kept `KEEP_S`
    seconds. Agents may share a database: each sees its own rows only.
    """

    def __init__(self, pool: asyncpg.Pool, agent_id: str, inbox_id: str, *, timeout_s: float) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._agent_id = agent_id
        self._inbox_id = inbox_id
        self._claims = 0

    @classmethod
    async def open(
        cls, url: str, agent_id: str, *, connections: int = 4, timeout_s: float = 5.0
    ) -> "PostgresInbox":
        """Connect and create the tables where they are missing; no call takes longer than `timeout_s`.

        Raises `ConfigurationError` when the database can't be used.
        """
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=connections,
                timeout=timeout_s,
                command_timeout=timeout_s,
                reset=_as_it_is,
                server_settings={"synchronous_commit": "on", "application_name": f"inbox of {agent_id}"},
            )
        except (*_FAILURES, ValueError) as error:
            raise ConfigurationError(f"the inbox's database can't be used: {error}") from error
        try:
            return cls(pool, agent_id, await _prepared(pool, agent_id), timeout_s=timeout_s)
        except _FAILURES as error:
            pool.terminate()
            raise ConfigurationError(f"the inbox's tables can't be made: {error}") from error

    @property
    def kind(self) -> Literal["postgres"]:
        """Shared by the agent's instances."""
        return "postgres"

    @property
    def inbox_id(self) -> str:
        """Made with the agent's first row and kept in the database."""
        return self._inbox_id

    async def claim(self, claim: Claim) -> Judgement:
        """Judge and write: one statement for a new key, one transaction for a known one."""
        self._claims += 1
        if self._claims % _PRUNE_EVERY == 0:
            await self._execute(_PRUNE, KEEP_S)
        async with self._connection() as connection:
            judgement: Judgement | None = None
            while judgement is None:  # again for a row that was pruned between the two looks
                judgement = await self._begin(connection, claim) or await self._judge(connection, claim)
            return judgement

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Write the new end of the claim."""
        await self._execute(_HOLD, self._agent_id, key, owner, hold_s)

    async def finish(
        self, key: str, owner: str, outcome: bytes, *, retryable: bool, failed: bool = False
    ) -> None:
        """Write the outcome."""
        await self._execute(_FINISH, self._agent_id, key, owner, outcome, retryable, failed)

    async def told(self, key: str, owner: str) -> None:
        """Forget the envelope."""
        await self._execute(_TOLD, self._agent_id, key, owner)

    async def untold(self, owner: str) -> Sequence[Untold]:
        """What instances left that are gone: their claims ran out."""
        async with self._connection() as connection:
            rows = await connection.fetch(_UNTOLD, self._agent_id, owner)
        return tuple(Untold(**row) for row in rows)

    async def aclose(self) -> None:
        """Close the connections, at once where they do not close by themselves."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _begin(self, connection: asyncpg.Connection, claim: Claim) -> Judgement | None:
        """The judgement of a key that has no row yet; it has one then."""
        fresh = judge(None, claim, 0.0)
        if fresh.record is None:
            return None
        return fresh if await connection.fetchval(_INSERT, *self._values(claim, fresh.record)) else None

    async def _judge(self, connection: asyncpg.Connection, claim: Claim) -> Judgement | None:
        """The judgement of a key that has a row; None where what has to be written finds none."""
        async with connection.transaction():
            row = await connection.fetchrow(_LOCK, self._agent_id, claim.key)
            if row is None:
                fresh = judge(None, claim, 0.0)
                return fresh if fresh.record is None else None
            kept = dict(row)
            now = kept.pop("now")
            judgement = judge(Record(**kept), claim, now)
            if judgement.record is not None:
                await connection.execute(_UPDATE, *self._values(claim, judgement.record))
            return judgement

    def _values(self, claim: Claim, record: Record) -> Sequence[object]:
        return (
            self._agent_id,
            claim.key,
            record.owner,
            record.attempt,
            claim.hold_s,
            record.outcome,
            record.retryable,
            record.failed,
            record.envelope,
        )

    async def _execute(self, statement: str, *values: object) -> None:
        async with self._connection() as connection:
            await connection.execute(statement, *values)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        try:
            async with self._pool.acquire(timeout=self._timeout_s) as connection:
                yield connection
        except _FAILURES as error:
            raise UnavailableError(f"the inbox failed: {type(error).__name__}") from error


async def _as_it_is(_connection: asyncpg.Connection) -> None:
    """Nothing here changes a session: resetting it would be one more round trip for every call."""


async def _prepared(pool: asyncpg.Pool, agent_id: str) -> str:
    """The agent's inbox id, with the tables in place."""
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _SCHEMA_LOCK)
        await connection.execute(_SCHEMA)
        await connection.execute(_PRUNE, KEEP_S)
        await connection.execute(
            "INSERT INTO agent_inbox_identity VALUES ($1, $2) ON CONFLICT DO NOTHING", agent_id, new_id()
        )
        inbox_id: str = await connection.fetchval(
            "SELECT inbox_id FROM agent_inbox_identity WHERE agent_id = $1", agent_id
        )
    return inbox_id
