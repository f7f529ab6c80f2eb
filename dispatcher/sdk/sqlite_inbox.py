"""An inbox in a SQLite file of the agent's own: remembers over crashes and restarts."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.protocol.topology import DEAD_LETTER_TTL_MS
from dispatcher.sdk.inbox import Claim, Inbox, Judgement, Record, Verdict, judge

KEEP_S = DEAD_LETTER_TTL_MS / 1000 + 24 * 3600
"""Longer than a dead letter can wait to be put back, so that putting it back repeats nothing."""
_PRUNE_EVERY = 256

_SCHEMA = """
CREATE TABLE IF NOT EXISTS inbox (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    touched_at REAL NOT NULL,
    outcome BLOB,
    retryable INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inbox_touched_at ON inbox (touched_at);
CREATE TABLE IF NOT EXISTS identity (
    row_id INTEGER PRIMARY KEY CHECK (row_id = 1),
    inbox_id TEXT NOT NULL
);
"""
_NOW = "(julianday('now') - 2440587.5) * 86400.0"
"""The database's clock in seconds since 1970, to the millisecond."""

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
        """Judge and, on RUN, write the claim in one transaction."""
        return await self._call(lambda: self._claim(claim))

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Write the new end of the claim in one transaction."""
        change = (
            f"UPDATE inbox SET expires_at = {_NOW} + ?, touched_at = {_NOW} "  # noqa: S608 - a constant
            "WHERE key = ? AND owner = ? AND outcome IS NULL"
        )
        await self._call(lambda: self._connection.execute(change, (hold_s, key, owner)))

    async def finish(self, key: str, owner: str, outcome: bytes, *, retryable: bool) -> None:
        """Write the outcome in one transaction."""
        change = (
            f"UPDATE inbox SET outcome = ?, retryable = ?, touched_at = {_NOW} "  # noqa: S608 - a constant
            "WHERE key = ? AND owner = ? AND outcome IS NULL"
        )
        await self._call(lambda: self._connection.execute(change, (outcome, int(retryable), key, owner)))

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
            if judgement.verdict is Verdict.RUN:
                self._connection.execute(
                    "INSERT OR REPLACE INTO inbox (key, owner, attempt, expires_at, touched_at) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (claim.key, claim.owner, claim.attempt, now + claim.hold_s, now),
                )
        return judgement

    def _read(self, key: str) -> tuple[Record | None, float]:
        (now,) = self._connection.execute(f"SELECT {_NOW}").fetchone()
        row = self._connection.execute(
            "SELECT owner, attempt, expires_at, outcome, retryable FROM inbox WHERE key = ?", (key,)
        ).fetchone()
        if row is None:
            return None, now
        owner, attempt, expires_at, outcome, retryable = row
        found = Record(
            owner=owner, attempt=attempt, expires_at=expires_at, outcome=outcome, retryable=bool(retryable)
        )
        return found, now


def _connect(path: Path, wait_s: float) -> tuple[sqlite3.Connection, str]:
    """The open file, locked, and its id."""
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        connection.execute("UPDATE inbox SET expires_at = 0 WHERE outcome IS NULL")
        connection.execute(f"DELETE FROM inbox WHERE touched_at < {_NOW} - ?", (KEEP_S,))  # noqa: S608
        connection.execute("INSERT OR IGNORE INTO identity (row_id, inbox_id) VALUES (1, ?)", (new_id(),))
        (inbox_id,) = connection.execute("SELECT inbox_id FROM identity").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection, inbox_id
