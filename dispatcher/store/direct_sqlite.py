# ruff: noqa: S608  (only names of our own tables and columns become part of a text)
"""Groups on SQLite: one visit to a thread of its own each, with all their statements."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial

from sqlalchemy import Table

from dispatcher.identifiers import RequestId
from dispatcher.store.changes import ChangeSet
from dispatcher.store.direct import CLAIM_MARGIN_MS, Written
from dispatcher.store.engine import Database, connect_sqlite
from dispatcher.store.failure import driver_failure
from dispatcher.store.layout import INSERTED, REPEATED, UPDATED, changing, key_of
from dispatcher.store.own_thread import OwnThread
from dispatcher.store.rows import Row
from dispatcher.store.tables import requests

_NOW_MS = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
_NOW = f"SELECT {_NOW_MS}"
_GUARDED = f" AND version = ? AND status = ? AND ? > {_NOW_MS} + {CLAIM_MARGIN_MS}"
"""The request is as its guard says; only then is anything of it written."""


class SqliteWriter:
    """Implements `DirectWriter`; takes turns with everything else that writes in this process."""

    def __init__(
        self,
        database: Database,
        connect: Callable[[Database], sqlite3.Connection] = connect_sqlite,
        thread: OwnThread | None = None,
    ) -> None:
        self._database = database
        self._connect = connect
        self._thread = thread or OwnThread("ledger")
        self._connection: sqlite3.Connection | None = None

    async def insert(self, changes: ChangeSet) -> Written:
        """See `DirectWriter.insert`."""
        return await self._run(self._insert, changes)

    async def update(self, changes: ChangeSet) -> Written:
        """See `DirectWriter.update`."""
        return await self._run(self._update, changes)

    async def read_now(self) -> int:
        """See `DirectWriter.read_now`."""
        return (await self._run(self._read_now, ChangeSet(0))).now_ms

    async def close(self) -> None:
        """See `DirectWriter.close`."""
        await self._thread.run(self._disconnect)
        self._thread.end()

    async def _run(
        self, write: Callable[[sqlite3.Connection, ChangeSet], Written], changes: ChangeSet
    ) -> Written:
        """Its turn lasts until the thread is done, longer than a caller that is cancelled."""
        await self._database.take_turn()
        try:
            written = self._thread.start(partial(self._in_thread, write, changes))
        except BaseException:
            self._database.end_turn()
            raise
        written.add_done_callback(lambda _: self._database.end_turn())
        return await asyncio.shield(written)

    def _in_thread(
        self, write: Callable[[sqlite3.Connection, ChangeSet], Written], changes: ChangeSet
    ) -> Written:
        try:
            if self._connection is None:
                self._connection = self._connect(self._database)
            with _transaction(self._connection):
                return write(self._connection, changes)
        except sqlite3.Error as error:
            raise driver_failure(error) from None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @staticmethod
    def _read_now(connection: sqlite3.Connection, _changes: ChangeSet) -> Written:
        return Written(request_ids=frozenset(), now_ms=connection.execute(_NOW).fetchone()[0])

    @staticmethod
    def _insert(connection: sqlite3.Connection, changes: ChangeSet) -> Written:
        done: set[RequestId] = set()
        text = f"{_insert_text(requests)} ON CONFLICT DO NOTHING"
        for table, pile in changes.rows():
            if table is not requests:
                _insert_rows(connection, table, pile.inserts, done)
                continue
            for row in pile.inserts:
                if connection.execute(text, INSERTED[requests].stored(row)).rowcount == 1:
                    done.add(row[0])
        return Written(request_ids=frozenset(done), now_ms=connection.execute(_NOW).fetchone()[0])

    @staticmethod
    def _update(connection: sqlite3.Connection, changes: ChangeSet) -> Written:
        done: set[RequestId] = set()
        guards = {guard.request_id: guard for guard in changes.guards}
        text = f"{_update_text(requests)}{_GUARDED}"
        for table, pile in changes.rows():
            if table is not requests:
                _insert_rows(connection, table, pile.inserts, done)
                _update_rows(connection, table, pile.updates, done)
                continue
            for row in pile.updates:
                values = UPDATED[requests].stored(row) + list(guards[row[0]][1:])
                if connection.execute(text, values).rowcount == 1:
                    done.add(row[0])
        return Written(request_ids=frozenset(done), now_ms=connection.execute(_NOW).fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors, as of a full disk, SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert_rows(
    connection: sqlite3.Connection, table: Table, piled: Sequence[Row], done: set[RequestId]
) -> None:
    if values := [INSERTED[table].stored(row) for row in piled if row[0] in done]:
        connection.executemany(_insert_text(table), values)


def _update_rows(
    connection: sqlite3.Connection, table: Table, piled: Sequence[Row], done: set[RequestId]
) -> None:
    if values := [UPDATED[table].stored(row) for row in piled if row[0] in done]:
        connection.executemany(_update_text(table), values)


@lru_cache(maxsize=64)
def _insert_text(table: Table) -> str:
    names = INSERTED[table].names
    into = ", ".join(f'"{name}"' for name in names)
    kept = " ON CONFLICT DO NOTHING" if table in REPEATED else ""
    return f"INSERT INTO {table.name} ({into}) VALUES ({', '.join('?' * len(names))}){kept}"


@lru_cache(maxsize=64)
def _update_text(table: Table) -> str:
    bound = {name: f'"{name}" = ?{place}' for place, name in enumerate(UPDATED[table].names, start=1)}
    sets = ", ".join(bound[name] for name in changing(table))
    same = " AND ".join(bound[name] for name in key_of(table))
    return f"UPDATE {table.name} SET {sets} WHERE {same}"
