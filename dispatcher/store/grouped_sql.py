# ruff: noqa: S608  (only names of our own tables and columns become part of a text)
"""One statement of PostgreSQL for all rows of a group, whatever tables they belong to.

Each pile of rows is one argument, a list of objects in JSON, and one part of a `WITH`. An array per
column costs the driver twice as much, for it looks at every value, and the server no less. Only of
long documents the texts are an argument of their own. What is below a request is written only where
the request's own row was.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

from dispatcher.store.changes import Guard, Pile
from dispatcher.store.column import Number, encoded_json
from dispatcher.store.direct import CLAIM_MARGIN_MS
from dispatcher.store.layout import INSERTED, REPEATED, UPDATED, Layout, changing, key_of
from dispatcher.store.rows import Row
from dispatcher.store.tables import decisions, requests

NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_TYPES = ((BigInteger, "int8"), (Integer, "int4"), (Boolean, "bool"), (Number, "float8"))

_APART: Mapping[Table, str] = {decisions: "document"}
"""The column whose texts go beside the JSON: within it each of their quotes would be written and read once
more, 5 % of the server's work for a decision with 25 candidates."""

Argument = str | Sequence[str]
Shape = tuple[tuple[Table, bool, bool], ...]
"""Which tables have rows to insert and to update, `requests` first."""


def shape_of(piles: Sequence[tuple[Table, Pile]]) -> Shape:
    """What the statement of these piles depends on."""
    return tuple((table, bool(pile.inserts), bool(pile.updates)) for table, pile in piles)


def documents(piles: Sequence[tuple[Table, Pile]]) -> list[Argument]:
    """The statement's arguments, in the order of its text."""
    found: list[Argument] = []
    for table, pile in piles:
        if pile.inserts:
            found += _arguments(INSERTED[table], pile.inserts, _APART.get(table))
        if pile.updates:
            found += _arguments(UPDATED[table], pile.updates, _APART.get(table))
    return found


def guards_document(guards: Sequence[Guard]) -> str:
    """The first argument of an update."""
    return encoded_json([guard._asdict() for guard in sorted(guards)])


@lru_cache(maxsize=256)
def insert_text(shape: Shape) -> str:
    """Stores the requests whose id and key are free; answers with the time and their ids."""
    numbers = count(1)
    done = f"done AS ({_insert(requests, numbers)} ON CONFLICT DO NOTHING RETURNING request_id)"
    return _whole([done], shape, numbers)


@lru_cache(maxsize=256)
def update_text(shape: Shape) -> str:
    """Changes the requests that are as the guards say; answers like `insert_text`.

    They are locked in key order. One that somebody changed meanwhile is looked at again once its
    lock is free, and left out. The time is looked at again when all locks are held: they may have
    taken long.
    """
    numbers = count(1)
    held = (
        "held AS (SELECT r.request_id, g.before_ms "
        f"FROM json_to_recordset(${next(numbers)}::json) "
        "AS g(request_id text, version int4, status text, before_ms int8) "
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
    names = INSERTED[table].names
    listed = ", ".join(f'v."{name}"' for name in names)
    only = f" JOIN {of} USING (request_id)" if of else ""
    into = ", ".join(f'"{name}"' for name in names)
    kept = " ON CONFLICT DO NOTHING" if table in REPEATED else ""
    values = f"SELECT {listed} FROM {_rows(table, names, numbers)}{only}"
    return f"INSERT INTO {table.name} ({into}) {values}{kept}"


def _update(table: Table, numbers: Iterator[int], of: str) -> str:
    rows = _rows(table, UPDATED[table].names, numbers)
    sets = ", ".join(f'"{name}" = v."{name}"' for name in changing(table))
    same = " AND ".join(f't."{name}" = v."{name}"' for name in key_of(table))
    return f"UPDATE {table.name} t SET {sets} FROM {rows} JOIN {of} USING (request_id) WHERE {same}"


def _rows(table: Table, names: Sequence[str], numbers: Iterator[int]) -> str:
    apart = _APART.get(table)
    inside = [name for name in names if name != apart]
    columns = ", ".join(f'"{name}" {_type(table.columns[name])}' for name in inside)
    rows = f"json_to_recordset(${next(numbers)}::json)"
    if apart is None:
        return f"{rows} AS v({columns})"
    listed = ", ".join(f'"{name}"' for name in (*inside, apart))
    return f"ROWS FROM ({rows} AS ({columns}), unnest(${next(numbers)}::text[])) AS v({listed})"


def _type(column: Column[Any]) -> str:
    return next((name for kind, name in _TYPES if isinstance(column.type, kind)), "text")


def _arguments(layout: Layout, piled: Sequence[Row], apart: str | None) -> list[Argument]:
    """The rows; beside them, in the same order, the texts of the column `apart`, which is no part of them."""
    rows = [dict(zip(layout.names, layout.stored(row), strict=True)) for row in piled]
    if apart is None:
        return [encoded_json(rows)]
    texts = [row.pop(apart) for row in rows]
    return [encoded_json(rows), texts]
