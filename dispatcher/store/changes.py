"""Collects what changed in one transaction and writes it, one statement per table and kind.

Rows go in key order, so that transactions wait for one another in one direction only. A direct
writer takes the same piles and has a statement of its own for them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from sqlalchemy import Table, Update, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.ledger import Step
from dispatcher.dispatch.request import RequestState
from dispatcher.identifiers import RequestId
from dispatcher.store import rows
from dispatcher.store.recent import Stored
from dispatcher.store.tables import attempts, decisions, intents, partials, requests, results, tasks

Item = TypeVar("Item")
Values = dict[str, Any]

_NEVER_UPDATED = frozenset(
    {"caller", "message", "context", "idempotency_key", "body_digest", "created_ms", "token"}
)
"""What a request or attempt was accepted with: fixed by its meaning, and some of it is large."""
PARENTS_FIRST = (requests, intents, tasks, attempts, results, decisions, partials)
_KEY_OF: Mapping[Table, Callable[[Values], Any]] = {
    table: itemgetter(*(column.name for column in table.primary_key)) for table in PARENTS_FIRST
}
CHANGING: Mapping[Table, tuple[str, ...]] = {
    table: tuple(c.name for c in table.columns if not c.primary_key and c.name not in _NEVER_UPDATED)
    for table in PARENTS_FIRST
}
"""The columns that an update of a table sets."""
INSERTED: Mapping[Table, tuple[str, ...]] = {
    table: tuple(c.name for c in table.columns if c is not requests.c.version) for table in PARENTS_FIRST
}
"""The columns that an insert into a table gives."""
REPEATED = frozenset({partials})
"""Tables whose rows may be told twice: the one that is stored stays."""
_ITEM_KEY: Mapping[Table, Callable[[Any], Any]] = {
    intents: attrgetter("position"),
    tasks: attrgetter("task_id"),
    attempts: attrgetter("task_id", "number"),
}
"""What tells the parts of one request apart."""
_INSERTS = {table: insert(table) for table in PARENTS_FIRST}
_UNLESS_STORED = {
    (dialect, table): make(table).on_conflict_do_nothing()
    for dialect, make in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
    for table in REPEATED
}
_UPDATES: dict[Table, Update] = {
    table: update(table).where(*(column == bindparam(f"key_{column.name}") for column in table.primary_key))
    for table in (requests, intents, tasks, attempts)
}


@dataclass(frozen=True, slots=True)
class Pile:
    """Rows of one table."""

    inserts: list[Values] = field(default_factory=list)
    updates: list[Values] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Guard:
    """What a request's row has to be for its changes to be written."""

    request_id: RequestId
    version: int
    status: str
    before_ms: int
    """From when on anybody may have claimed one of its attempts, which no version tells of."""


class ChangeSet:
    """The rows to be written in one transaction. Add each request's final state once."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._piles = {table: Pile() for table in PARENTS_FIRST}
        self._recorded: set[RequestId] = set()
        self.guards: list[Guard] = []

    def rows(self) -> Iterator[tuple[Table, Pile]]:
        """The piles with anything in them, parents first, each in key order."""
        for table, pile in self._piles.items():
            pile.inserts.sort(key=_name if table is requests else _KEY_OF[table])
            pile.updates.sort(key=_KEY_OF[table])
            if pile.inserts or pile.updates:
                yield table, pile

    def add_new(self, after: RequestState) -> None:
        """Note a new request."""
        self._piles[requests].inserts.append(rows.request_row(after.request))
        self._note_parts(RequestState(request=after.request, intents=(), tasks=(), attempts=()), after)

    def add(self, stored: Stored, after: RequestState) -> Stored:
        """Note what differs from the stored state, its records noted before; what will be stored then.

        What a state no longer has stays stored. Whatever is written of a request counts its
        version up.
        """
        before, request = stored.state, after.request
        has_parts = self._note_parts(before, after)
        if not (has_parts or before.request != request or request.request_id in self._recorded):
            return stored
        version = stored.version + 1
        self._piles[requests].updates.append(rows.request_row(request) | {"version": version})
        status, until_ms = before.request.status, stored.claimed_until_ms
        self.guards.append(Guard(request.request_id, stored.version, status, until_ms))
        return Stored(after, version)

    def _note_parts(self, before: RequestState, after: RequestState) -> bool:
        request, caller = after.request, after.request.caller
        noted = (
            self._note(intents, before.intents, after.intents, lambda item: rows.intent_row(item, request)),
            self._note(tasks, before.tasks, after.tasks, lambda item: rows.task_row(item, caller)),
            self._note(
                attempts, before.attempts, after.attempts, lambda item: rows.attempt_row(item, caller)
            ),
        )
        return any(noted)

    def add_records(self, step: Step) -> None:
        """Note the results and decisions that go with one step."""
        caller = step.state.request.caller
        if step.results or step.decisions or step.partials:
            self._recorded.add(step.state.request.request_id)
        self._piles[results].inserts.extend(rows.result_row(r, caller, self._now_ms) for r in step.results)
        self._piles[decisions].inserts.extend(
            rows.decision_row(d, caller, self._now_ms) for d in step.decisions
        )
        self._piles[partials].inserts.extend(rows.partial_row(p, caller, self._now_ms) for p in step.partials)

    async def write(self, connection: AsyncConnection) -> None:
        """Write everything noted, whatever the guards say: under locks, or what is new."""
        for table, pile in self.rows():
            if pile.inserts:
                plain = _INSERTS[table]
                chosen = _UNLESS_STORED.get((connection.dialect.name, table), plain)
                await connection.execute(chosen, pile.inserts)
            if pile.updates:
                await connection.execute(
                    _UPDATES[table], [_update_values(table, row) for row in pile.updates]
                )

    def _note(
        self, table: Table, before: Sequence[Item], after: Sequence[Item], to_row: Callable[[Item], Values]
    ) -> bool:
        if before == after:
            return False
        pile, key = self._piles[table], _ITEM_KEY[table]
        stored = {key(item): item for item in before}
        new = [to_row(item) for item in after if key(item) not in stored]
        changed = [to_row(item) for item in after if stored.get(key(item), item) != item]
        pile.inserts.extend(new)
        pile.updates.extend(changed)
        return bool(new or changed)


def _name(request: Values) -> tuple[str, str, str]:
    """What two new requests may have in common: a lock on one key is waited for in this order."""
    return request["caller"], request["idempotency_key"] or "", request["request_id"]


def _update_values(table: Table, row: Values) -> Values:
    values = {name: row[name] for name in CHANGING[table]}
    return values | {f"key_{column.name}": row[column.name] for column in table.primary_key}
