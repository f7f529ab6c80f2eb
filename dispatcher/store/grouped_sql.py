# ruff: noqa: S608  (only names of our own tables and columns become part of a text)
"""One statement of PostgreSQL for all rows of a group, whatever tables they belong to.

Each pile of rows is one list of arrays, one array per column, and one part of a `WITH`. What is
below a request is written only where the request's own row was.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Table

from dispatcher.store.changes import CHANGING, INSERTED, REPEATED, Pile
from dispatcher.store.column import Json, Words, stored_json, stored_words
from dispatcher.store.direct import CLAIM_MARGIN_MS
from dispatcher.store.tables import requests

NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_TYPES = ((BigInteger, "int8"), (Integer, "int4"), (Boolean, "bool"), (Double, "float8"))

Shape = tuple[tuple[Table, bool, bool], ...]
"""Which tables have rows to insert and to update, `requests` first."""
Bind = Callable[[Any], Any]


def shape_of(piles: Sequence[tuple[Table, Pile]]) -> Shape:
    """What the statement of these piles depends on."""
    return tuple((table, bool(pile.inserts), bool(pile.updates)) for table, pile in piles)


def arrays(table: Table, pile: Pile) -> Iterator[list[Any]]:
    """The statement's arguments for one table, in the order of its text."""
    if pile.inserts:
        yield from (_array(bind, name, pile.inserts) for name, bind in _INSERTED[table])
    if pile.updates:
        yield from (_array(bind, name, pile.updates) for name, bind in _UPDATED[table])


@lru_cache(maxsize=256)
def insert_text(shape: Shape) -> str:
    """Stores the requests whose id and key are free; answers with the time and their ids."""
    numbers = count(1)
    done = f"done AS ({_insert(requests, numbers)} ON CONFLICT DO NOTHING RETURNING request_id)"
    return _whole([done], shape, numbers)


@lru_cache(maxsize=256)
def update_text(shape: Shape) -> str:
    """Changes the requests that are as the first four arrays say; answers like `insert_text`.

    They are locked in key order. One that somebody changed meanwhile is looked at again once its
    lock is free, and left out. The time is looked at again when all locks are held: they may have
    taken long.
    """
    numbers = count(1)
    guards = ", ".join(f"${next(numbers)}::{kind}[]" for kind in ("text", "int4", "text", "int8"))
    held = (
        "held AS (SELECT r.request_id, g.before_ms "
        f"FROM unnest({guards}) AS g(request_id, version, status, before_ms) "
        "JOIN requests r ON r.request_id = g.request_id AND r.version = g.version AND r.status = g.status "
        f"AND g.before_ms > {NOW} + {CLAIM_MARGIN_MS} "
        "ORDER BY r.request_id FOR NO KEY UPDATE OF r)"
    )
    in_time = f"(SELECT count(*) FROM held) > 0 AND held.before_ms > {NOW} + {CLAIM_MARGIN_MS}"
    done = f"done AS ({_update(requests, numbers, 'held')} AND {in_time} RETURNING t.request_id)"
    return _whole([held, done], shape, numbers)


def _whole(parts: list[str], shape: Shape, numbers: Iterator[int]) -> str:
    for table, inserts, updates in shape:
        if table is requests:
            continue
        if inserts:
            parts.append(f"new_{table.name} AS ({_insert(table, numbers, 'done')})")
        if updates:
            parts.append(f"old_{table.name} AS ({_update(table, numbers, 'done')})")
    return f"WITH {', '.join(parts)} SELECT {NOW}, ARRAY(SELECT request_id FROM done)"


def _insert(table: Table, numbers: Iterator[int], of: str | None = None) -> str:
    names = INSERTED[table]
    listed = ", ".join(f'v."{name}"' for name in names)
    only = f" JOIN {of} USING (request_id)" if of else ""
    into = ", ".join(f'"{name}"' for name in names)
    kept = " ON CONFLICT DO NOTHING" if table in REPEATED else ""
    values = f"SELECT {listed} FROM {_unnest(table, names, numbers)}{only}"
    return f"INSERT INTO {table.name} ({into}) {values}{kept}"


def _update(table: Table, numbers: Iterator[int], of: str) -> str:
    rows = _unnest(table, _updated(table), numbers)
    sets = ", ".join(f'"{name}" = v."{name}"' for name in CHANGING[table])
    same = " AND ".join(f't."{column.name}" = v."{column.name}"' for column in table.primary_key)
    return f"UPDATE {table.name} t SET {sets} FROM {rows} JOIN {of} USING (request_id) WHERE {same}"


def _unnest(table: Table, names: Sequence[str], numbers: Iterator[int]) -> str:
    columns = [table.columns[name] for name in names]
    listed = ", ".join(f"${next(numbers)}::{_type(column)}[]" for column in columns)
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"unnest({listed}) AS v({quoted})"


def _updated(table: Table) -> tuple[str, ...]:
    return (*(column.name for column in table.primary_key), *CHANGING[table])


def _type(column: Column[Any]) -> str:
    return next((name for kind, name in _TYPES if isinstance(column.type, kind)), "text")


def bind_of(column: Column[Any]) -> Bind | None:
    """What turns a value into the one that is stored; None where it is stored as it is."""
    if isinstance(column.type, Words):
        return stored_words
    return stored_json if isinstance(column.type, Json) else None


def _array(bind: Bind | None, name: str, rows: Sequence[dict[str, Any]]) -> list[Any]:
    return [row[name] for row in rows] if bind is None else [bind(row[name]) for row in rows]


def _bound(table: Table, names: Sequence[str]) -> tuple[tuple[str, Bind | None], ...]:
    return tuple((name, bind_of(table.columns[name])) for name in names)


_INSERTED = {table: _bound(table, names) for table, names in INSERTED.items()}
_UPDATED = {table: _bound(table, _updated(table)) for table in CHANGING}
