# ruff: noqa: S608  (only names of our own tables and columns become part of a text)
"""Groups on SQLite: one visit to a thread of its own each, with all their statements."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Table

from dispatcher.identifiers import RequestId
from dispatcher.store.changes import CHANGING, INSERTED, REPEATED, ChangeSet
from dispatcher.store.direct import CLAIM_MARGIN_MS, Written
from dispatcher.store.engine import Database, connect_sqlite
from dispatcher.store.failure import driver_failure
from dispatcher.store.grouped_sql import bind_of
from dispatcher.store.tables import requests

Outcome = TypeVar("Outcome")
Rows = Sequence[dict[str, Any]]

_NOW_MS = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"
_NOW = f"SELECT {_NOW_MS}"
_HOLD = (
    "UPDATE requests SET version = version + 1 WHERE request_id = ? AND version = ? AND status = ? "
    f"AND ? > {_NOW_MS} + {CLAIM_MARGIN_MS}"
)


class SqliteWriter:
    """Implements `DirectWriter`; takes turns with everything else that writes in this process."""

    def __init__(
        self, database: Database, connect: Callable[[Database], sqlite3.Connection] = connect_sqlite
    ) -> None:
        self._database = database
        self._connect = connect
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
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
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, connection.close)
        self._thread.shutdown(wait=False)

    async def _run(
        self, write: Callable[[sqlite3.Connection, ChangeSet], Written], changes: ChangeSet
    ) -> Written:
        async with self._database.turn():
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._in_thread, write, changes
            )

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

    @staticmethod
    def _read_now(connection: sqlite3.Connection, _changes: ChangeSet) -> Written:
        return Written(request_ids=frozenset(), now_ms=connection.execute(_NOW).fetchone()[0])

    @staticmethod
    def _insert(connection: sqlite3.Connection, changes: ChangeSet) -> Written:
        done: set[RequestId] = set()
        text = f"{_insert_text(requests)} ON CONFLICT DO NOTHING"
        for table, pile in changes.rows():
            if table is not requests:
                _insert_rows(connection, table, _only(pile.inserts, done))
                continue
            rows = _values(table, INSERTED[table], pile.inserts)
            for row, values in zip(pile.inserts, rows, strict=True):
                if connection.execute(text, values).rowcount == 1:
                    done.add(row["request_id"])
        return Written(request_ids=frozenset(done), now_ms=connection.execute(_NOW).fetchone()[0])

    @staticmethod
    def _update(connection: sqlite3.Connection, changes: ChangeSet) -> Written:
        done = {
            guard.request_id
            for guard in changes.guards
            if connection.execute(_HOLD, astuple(guard)).rowcount == 1
        }
        for table, pile in changes.rows():
            _insert_rows(connection, table, _only(pile.inserts, done))
            _update_rows(connection, table, _only(pile.updates, done))
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


def _only(rows: Rows, done: set[RequestId]) -> Rows:
    return [row for row in rows if row["request_id"] in done]


def _insert_rows(connection: sqlite3.Connection, table: Table, rows: Rows) -> None:
    if rows:
        connection.executemany(_insert_text(table), _values(table, INSERTED[table], rows))


def _update_rows(connection: sqlite3.Connection, table: Table, rows: Rows) -> None:
    if rows:
        names = (*CHANGING[table], *(column.name for column in table.primary_key))
        connection.executemany(_update_text(table), _values(table, names, rows))


def _values(table: Table, names: tuple[str, ...], rows: Rows) -> list[list[Any]]:
    binds = [(name, bind_of(table.columns[name])) for name in names]
    return [[bind(row[name]) if bind else row[name] for name, bind in binds] for row in rows]


@lru_cache(maxsize=64)
def _insert_text(table: Table) -> str:
    names = INSERTED[table]
    into = ", ".join(f'"{name}"' for name in names)
    kept = " ON CONFLICT DO NOTHING" if table in REPEATED else ""
    return f"INSERT INTO {table.name} ({into}) VALUES ({', '.join('?' * len(names))}){kept}"


@lru_cache(maxsize=64)
def _update_text(table: Table) -> str:
    sets = ", ".join(f'"{name}" = ?' for name in CHANGING[table])
    same = " AND ".join(f'"{column.name}" = ?' for column in table.primary_key)
    return f"UPDATE {table.name} SET {sets} WHERE {same}"
