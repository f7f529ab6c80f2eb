# ruff: noqa: S608  (only names of our own tables and columns become part of a text)
"""One statement of PostgreSQL for all rows of a group, whatever tables they belong to.

Each pile of rows is one part of a `WITH`. Its short values are one argument, a list of objects in JSON:
an array per column costs the driver twice as much, for it looks at every value, and the server no
less. The server reads JSON twice, character by character, so keys are the columns' places, what is null
is left out, and each column of long texts is an argument of its own. What is below a request is written
only where the request's own row was.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

from dispatcher.store.changes import Guard, Pile
from dispatcher.store.column import Number, encoded_json
from dispatcher.store.direct import CLAIM_MARGIN_MS
from dispatcher.store.layout import INSERTED, REPEATED, UPDATED, Layout, changing, key_of
from dispatcher.store.rows import Row
from dispatcher.store.tables import decisions, intents, partials, requests, results, tasks

NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_TYPES = ((BigInteger, "int8"), (Integer, "int4"), (Boolean, "bool"), (Number, "float8"))

_APART: Mapping[Table, tuple[str, ...]] = {
    requests: ("context", "answer"),
    intents: ("inputs",),
    tasks: ("inputs", "result_text", "result_data"),
    results: ("document",),
    decisions: ("document",),
    partials: ("document",),
}
"""Columns whose texts go beside the JSON: a sixth of the server's work where each is of 1 KB."""

Argument = str | Sequence[str]
Shape = tuple[tuple[Table, bool, bool], ...]
"""Which tables have rows to insert and to update, `requests` first."""


class _Form(NamedTuple):
    """How rows of a layout are sent: places within the JSON with their keys there, and places beside it."""

    layout: Layout
    inside: Mapping[int, str]
    apart: Sequence[int]


def _form(table: Table, layout: Layout) -> _Form:
    names = _APART.get(table, ())
    apart = [place for place, name in enumerate(layout.names) if name in names]
    inside = {place: str(place) for place in range(len(layout.names)) if place not in apart}
    return _Form(layout, inside, apart)


_NEW: Mapping[Table, _Form] = {table: _form(table, layout) for table, layout in INSERTED.items()}
_CHANGED: Mapping[Table, _Form] = {table: _form(table, layout) for table, layout in UPDATED.items()}


def shape_of(piles: Sequence[tuple[Table, Pile]]) -> Shape:
    """What the statement of these piles depends on."""
    return tuple((table, bool(pile.inserts), bool(pile.updates)) for table, pile in piles)


def documents(piles: Sequence[tuple[Table, Pile]]) -> list[Argument]:
    """The statement's arguments, in the order of its text."""
    found: list[Argument] = []
    for table, pile in piles:
        if pile.inserts:
            found += _arguments(_NEW[table], pile.inserts)
        if pile.updates:
            found += _arguments(_CHANGED[table], pile.updates)
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
    values = f"SELECT {listed} FROM {_rows(table, _NEW[table], numbers)}{only}"
    return f"INSERT INTO {table.name} ({into}) {values}{kept}"


def _update(table: Table, numbers: Iterator[int], of: str) -> str:
    rows = _rows(table, _CHANGED[table], numbers)
    sets = ", ".join(f'"{name}" = v."{name}"' for name in changing(table))
    same = " AND ".join(f't."{name}" = v."{name}"' for name in key_of(table))
    return f"UPDATE {table.name} t SET {sets} FROM {rows} JOIN {of} USING (request_id) WHERE {same}"


def _rows(table: Table, form: _Form, numbers: Iterator[int]) -> str:
    names = form.layout.names
    typed = ", ".join(f'"{key}" {_type(table.columns[names[place]])}' for place, key in form.inside.items())
    parts = [f"json_to_recordset(${next(numbers)}::json) AS ({typed})"]
    parts += [f"unnest(${next(numbers)}::text[])" for _ in form.apart]
    listed = ", ".join(f'"{names[place]}"' for place in (*form.inside, *form.apart))
    return f"ROWS FROM ({', '.join(parts)}) AS v({listed})"


def _type(column: Column[Any]) -> str:
    return next((name for kind, name in _TYPES if isinstance(column.type, kind)), "text")


def _arguments(form: _Form, piled: Sequence[Row]) -> list[Argument]:
    """The rows' short values; beside them, in the same order, the texts of each column that goes apart."""
    rows = [form.layout.stored(row) for row in piled]
    inside = form.inside.items()
    short = [{key: value for place, key in inside if (value := row[place]) is not None} for row in rows]
    return [encoded_json(short), *([row[place] for row in rows] for place in form.apart)]
