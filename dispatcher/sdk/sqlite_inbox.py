"""An inbox in a SQLite file of the agent's own: remembers over crashes and restarts."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.sdk.inbox import KEEP_S, Claim, Inbox, Judgement, Record, Untold, judge

_PRUNE_EVERY = 256

_SCHEMA = """
CREATE TABLE IF NOT EXISTS inbox (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    touched_at REAL NOT NULL,
    outcome BLOB,
    retryable INTEGER NOT NULL DEFAULT 0,
    envelope BLOB
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inbox_touched_at ON inbox (touched_at);
CREATE TABLE IF NOT EXISTS identity (
    row_id INTEGER PRIMARY KEY CHECK (row_id = 1),
    inbox_id TEXT NOT NULL
);
"""
_NOW = "(julianday('now') - 2440587.5) * 86400.0"
"""The database's clock in seconds since 1970, to the millisecond."""
_UNTOLD = f"""
SELECT key, owner, envelope, outcome FROM inbox
WHERE envelope IS NOT NULL AND owner <> ? AND expires_at <= {_NOW} ORDER BY touched_at LIMIT 100
"""  # noqa: S608 - constants

_RETRYABLE, _FAILED = 1, 2
"""Bits of the column `retryable`; files of the first release know the first one only."""

ReturnT = TypeVar("ReturnT")


class SqliteInbox(Inbox):
    """Every claim and outcome is on disk (synchronous=FULL) before the call returns.

    The file belongs to one process at a time: it is locked while open, so whatever an earlier
    owner left running is surely dead and counts as such at once. Rows are kept `KEEP_S` seconds.
    """

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor, inbox_id: str) -> None:
        self._connection = connection
        self._thread = thread
        self._inbox_id = inbox_id
        self._claims = 0

    @classmethod
    async def open(cls, path: Path, *, wait_s: float = 5.0) -> "SqliteInbox":
        """Open or create the file; waits up to `wait_s` seconds for another process to let go of it.

        Raises `ConfigurationError` when it can't be used.
        """
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inbox")
        loop = asyncio.get_running_loop()
        try:
            connection, inbox_id = await loop.run_in_executor(thread, _connect, path, wait_s)
        except sqlite3.Error as error:
            thread.shutdown(wait=False)
            raise ConfigurationError(f"the inbox {path} can't be used: {error}") from error
        return cls(connection, thread, inbox_id)

    @property
    def kind(self) -> Literal["sqlite"]:
        """Private to its process."""
        return "sqlite"

    @property
    def inbox_id(self) -> str:
        """Made with the file and kept in it."""
        return self._inbox_id

    async def claim(self, claim: Claim) -> Judgement:
        """Judge and write in one transaction."""
        return await self._call(lambda: self._claim(claim))

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Write the new end of the claim in one transaction."""
        change = (
            f"UPDATE inbox SET expires_at = {_NOW} + ?, touched_at = {_NOW} "  # noqa: S608 - a constant
            "WHERE key = ? AND owner = ? AND outcome IS NULL"
        )
        await self._call(lambda: self._connection.execute(change, (hold_s, key, owner)))

    async def finish(
        self, key: str, owner: str, outcome: bytes, *, retryable: bool, failed: bool = False
    ) -> None:
        """Write the outcome in one transaction."""
        change = (
            f"UPDATE inbox SET outcome = ?, retryable = ?, touched_at = {_NOW} "  # noqa: S608 - a constant
            "WHERE key = ? AND owner = ? AND outcome IS NULL"
        )
        await self._call(
            lambda: self._connection.execute(change, (outcome, _ending(retryable, failed), key, owner))
        )

    async def told(self, key: str, owner: str) -> None:
        """Forget the envelope in one transaction."""
        change = "UPDATE inbox SET envelope = NULL WHERE key = ? AND owner = ?"
        await self._call(lambda: self._connection.execute(change, (key, owner)))

    async def untold(self, owner: str) -> Sequence[Untold]:
        """What earlier processes left; this file is nobody else's now."""
        return await self._call(lambda: self._untold(owner))

    async def aclose(self) -> None:
        """Close the file and let go of its lock."""
        await self._call(self._connection.close)
        self._thread.shutdown(wait=False)

    async def _call(self, work: Callable[[], ReturnT]) -> ReturnT:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise UnavailableError(f"the inbox failed: {error}") from error

    def _claim(self, claim: Claim) -> Judgement:
        self._claims += 1
        if self._claims % _PRUNE_EVERY == 0:
            self._connection.execute(f"DELETE FROM inbox WHERE touched_at < {_NOW} - ?", (KEEP_S,))  # noqa: S608
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            record, now = self._read(claim.key)
            judgement = judge(record, claim, now)
            if judgement.record is not None:
                self._write(claim.key, judgement.record, now)
        return judgement

    def _write(self, key: str, record: Record, now: float) -> None:
        kept = (
            record.owner,
            record.attempt,
            record.expires_at,
            now,
            record.outcome,
            _ending(record.retryable, record.failed),
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO inbox "
            "(key, owner, attempt, expires_at, touched_at, outcome, retryable, envelope) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (key, *kept, record.envelope),
        )

    def _untold(self, owner: str) -> Sequence[Untold]:
        names = ("key", "owner", "envelope", "outcome")
        rows = self._connection.execute(_UNTOLD, (owner,))
        return tuple(Untold(**dict(zip(names, row, strict=True))) for row in rows)

    def _read(self, key: str) -> tuple[Record | None, float]:
        (now,) = self._connection.execute(f"SELECT {_NOW}").fetchone()
        row = self._connection.execute(
            "SELECT owner, attempt, expires_at, outcome, retryable FROM inbox WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return None, now
        owner, attempt, expires_at, outcome, retryable = row
        found = Record(
            owner=owner,
            attempt=attempt,
            expires_at=expires_at,
            outcome=outcome,
            retryable=bool(retryable & _RETRYABLE),
            failed=bool(retryable & _FAILED),
        )
        return found, now


def _ending(retryable: bool, failed: bool) -> int:  # noqa: FBT001 - the two bits, in their order
    return retryable * _RETRYABLE + failed * _FAILED


def _connect(path: Path, wait_s: float) -> tuple[sqlite3.Connection, str]:
    """The open file, locked, and its id."""
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        _add_envelope(connection)
        connection.execute("UPDATE inbox SET expires_at = 0 WHERE outcome IS NULL OR envelope IS NOT NULL")
        connection.execute(f"DELETE FROM inbox WHERE touched_at < {_NOW} - ?", (KEEP_S,))  # noqa: S608
        connection.execute("INSERT OR IGNORE INTO identity (row_id, inbox_id) VALUES (1, ?)", (new_id(),))
        (inbox_id,) = connection.execute("SELECT inbox_id FROM identity").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection, inbox_id


def _add_envelope(connection: sqlite3.Connection) -> None:
    """A file of the first release has no such column."""
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info (inbox)")}
    if "envelope" not in columns:
        connection.execute("ALTER TABLE inbox ADD COLUMN envelope BLOB")
    connection.execute("CREATE INDEX IF NOT EXISTS inbox_untold ON inbox (key) WHERE envelope IS NOT NULL")
