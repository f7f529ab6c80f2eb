"""Collects what changed in one transaction and writes it, one statement per table and kind.

Rows go in key order, so that transactions wait for one another in one direction only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Table, Update, bindparam, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.ledger import Step
from dispatcher.dispatch.request import RequestState
from dispatcher.store import rows
from dispatcher.store.tables import attempts, decisions, intents, requests, results, tasks

Item = TypeVar("Item")
Values = dict[str, Any]

_NEVER_UPDATED = frozenset(
    {"caller", "message", "context", "idempotency_key", "body_digest", "created_ms", "token"}
)
"""What a request or attempt was accepted with: fixed by its meaning, and some of it is large."""
_PARENTS_FIRST = (requests, intents, tasks, attempts, results, decisions)
_INSERTS = {table: insert(table) for table in _PARENTS_FIRST}
_UPDATES: dict[Table, Update] = {
    table: update(table).where(*(column == bindparam(f"key_{column.name}") for column in table.primary_key))
    for table in (requests, intents, tasks, attempts)
}


@dataclass(frozen=True, slots=True)
class _Pile:
    inserts: list[Values] = field(default_factory=list)
    updates: list[Values] = field(default_factory=list)


class ChangeSet:
    """The rows to be written in one transaction. Add each request's final state once."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._piles = {table: _Pile() for table in _PARENTS_FIRST}

    def add_new(self, after: RequestState) -> None:
        """Note the parts of a new request, whose own row is already inserted."""
        self.add(RequestState(request=after.request, intents=(), tasks=(), attempts=()), after)

    def add(self, before: RequestState, after: RequestState) -> None:
        """Note what differs from the stored state. What a state no longer has stays stored."""
        request = after.request
        if before.request != request:
            self._piles[requests].updates.append(rows.request_row(request))
        self._note(intents, before.intents, after.intents, lambda item: rows.intent_row(item, request))
        self._note(tasks, before.tasks, after.tasks, lambda item: rows.task_row(item, request.caller))
        self._note(
            attempts, before.attempts, after.attempts, lambda item: rows.attempt_row(item, request.caller)
        )

    def add_records(self, step: Step) -> None:
        """Note the results and decisions that go with one step."""
        caller = step.state.request.caller
        self._piles[results].inserts.extend(rows.result_row(r, caller, self._now_ms) for r in step.results)
        self._piles[decisions].inserts.extend(
            rows.decision_row(d, caller, self._now_ms) for d in step.decisions
        )

    async def write(self, connection: AsyncConnection) -> None:
        """Write everything noted."""
        for table, pile in self._piles.items():
            key = _key_of(table)
            if pile.inserts:
                await connection.execute(_INSERTS[table], sorted(pile.inserts, key=key))
            if pile.updates:
                await connection.execute(
                    _UPDATES[table],
                    [_update_values(table, row) for row in sorted(pile.updates, key=key)],
                )

    def _note(
        self, table: Table, before: Sequence[Item], after: Sequence[Item], to_row: Callable[[Item], Values]
    ) -> None:
        if before == after:
            return
        key = _key_of(table)
        stored = {key(row): row for row in map(to_row, before)}
        for row in map(to_row, after):
            known = stored.get(key(row))
            if known is None:
                self._piles[table].inserts.append(row)
            elif known != row:
                self._piles[table].updates.append(row)


def _key_of(table: Table) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    names = [column.name for column in table.primary_key]
    return lambda row: tuple(row[name] for name in names)


def _update_values(table: Table, row: Values) -> Values:
    keys = {column.name for column in table.primary_key}
    values = {name: value for name, value in row.items() if name not in keys | _NEVER_UPDATED}
    return values | {f"key_{name}": row[name] for name in keys}
