"""Which columns of the ledger's tables are written, in which order, and what their values become.

A row is written as it is by SQLAlchemy, which knows the columns' types, and by `Layout.stored` to a
driver, which does not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table

from dispatcher.store import rows
from dispatcher.store.column import Json, Number, Words, stored_json, stored_number, stored_words
from dispatcher.store.rows import Row
from dispatcher.store.tables import attempts, decisions, handoffs, intents, partials, requests, results, tasks

PARENTS_FIRST = (requests, intents, tasks, attempts, results, decisions, partials, handoffs)
REPEATED = frozenset({partials})
"""Tables whose rows may be told twice: the one that is stored stays."""
_NEVER_UPDATED = frozenset(
    {
        *("caller", "replica", "message", "language", "environment", "session_id", "user_id", "context"),
        *("session_version", "idempotency_key", "body_digest", "created_ms"),
        *("position", "repeat", "token"),
    }
)
"""What a request, task or attempt was made with: fixed by its meaning, and some of it is large."""
_BINDS = ((Words, stored_words), (Json, stored_json), (Number, stored_number))


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a written row; `binds` are the places of values that are stored otherwise."""

    names: tuple[str, ...]
    binds: tuple[tuple[int, Callable[[Any], Any]], ...]

    def stored(self, row: Row) -> list[Any]:
        """A row's values as they are stored."""
        values = list(row)
        for place, bind in self.binds:
            if values[place] is not None:
                values[place] = bind(values[place])
        return values


def _bind_of(column: Column[Any]) -> Callable[[Any], Any] | None:
    """What turns a value into the one that is stored; None where it is stored as it is."""
    return next((bind for kind, bind in _BINDS if isinstance(column.type, kind)), None)


def _layout(table: Table, names: tuple[str, ...]) -> Layout:
    binds = ((place, _bind_of(table.columns[name])) for place, name in enumerate(names))
    return Layout(names, tuple((place, bind) for place, bind in binds if bind is not None))


def key_of(table: Table) -> tuple[str, ...]:
    """The columns of the table's primary key."""
    return tuple(str(column.name) for column in table.primary_key)


def changing(table: Table) -> tuple[str, ...]:
    """The columns that an update of the table sets."""
    columns = (column for column in table.columns if not column.primary_key)
    return tuple(str(column.name) for column in columns if column.name not in _NEVER_UPDATED)


INSERTED: Mapping[Table, Layout] = {
    requests: _layout(requests, rows.REQUEST_COLUMNS),
    intents: _layout(intents, rows.INTENT_COLUMNS),
    tasks: _layout(tasks, rows.TASK_COLUMNS),
    attempts: _layout(attempts, rows.ATTEMPT_COLUMNS),
    results: _layout(results, rows.RESULT_COLUMNS),
    decisions: _layout(decisions, rows.DECISION_COLUMNS),
    partials: _layout(partials, rows.PARTIAL_COLUMNS),
    handoffs: _layout(handoffs, rows.HANDOFF_COLUMNS),
}
"""Rows of new things. A request's version is not among them: it begins at 0."""
UPDATED: Mapping[Table, Layout] = {
    table: _layout(table, (*key_of(table), *changing(table)))
    for table in (requests, intents, tasks, attempts)
}
"""Rows of changed things, their key first."""
