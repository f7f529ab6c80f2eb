"""Collects what changed in one transaction and writes it, one statement per table and kind.

Rows go in key order, so that transactions wait for one another in one direction only. A direct
writer takes the same piles and has a statement of its own for them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Table, Update, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Request, RequestState
from dispatcher.identifiers import RequestId
from dispatcher.store import rows
from dispatcher.store.layout import INSERTED, PARENTS_FIRST, REPEATED, UPDATED, key_of
from dispatcher.store.recent import Stored
from dispatcher.store.rows import Row
from dispatcher.store.tables import attempts, decisions, handoffs, intents, partials, requests, results, tasks

Item = TypeVar("Item")


def _places(table: Table, names: Sequence[str]) -> Callable[[Row], Any]:
    """What takes these columns' values from an inserted row of the table."""
    return itemgetter(*(INSERTED[table].names.index(name) for name in names))


_NEW_KEY: Mapping[Table, Callable[[Row], Any]] = {
    table: _places(table, key_of(table)) for table in PARENTS_FIRST
}
_OLD_KEY: Mapping[Table, Callable[[Row], Any]] = {
    table: itemgetter(*range(len(key_of(table)))) for table in UPDATED
}
_CHANGED: Mapping[Table, Callable[[Row], Row]] = {
    table: _places(table, [name for name in UPDATED[table].names if name != "version"]) for table in UPDATED
}
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
    for table in UPDATED
}
_UPDATE_NAMES: Mapping[Table, tuple[str, ...]] = {
    table: (*(f"key_{name}" for name in key_of(table)), *layout.names[len(key_of(table)) :])
    for table, layout in UPDATED.items()
}


class Pile(NamedTuple):
    """Rows of one table."""

    inserts: list[Row]
    updates: list[Row]


class Guard(NamedTuple):
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
        self._piles = {table: Pile([], []) for table in PARENTS_FIRST}
        self._recorded: set[RequestId] = set()
        self.guards: list[Guard] = []

    def rows(self) -> Iterator[tuple[Table, Pile]]:
        """The piles with anything in them, parents first, each in key order."""
        for table, pile in self._piles.items():
            if pile.inserts:
                pile.inserts.sort(key=_name if table is requests else _NEW_KEY[table])
            if pile.updates:
                pile.updates.sort(key=_OLD_KEY[table])
            if pile.inserts or pile.updates:
                yield table, pile

    def add_new(self, after: RequestState) -> None:
        """Note a new request."""
        request = after.request
        self._piles[requests].inserts.append(rows.request_row(request))
        self._piles[intents].inserts.extend([rows.intent_row(one, request) for one in after.intents])
        self._piles[tasks].inserts.extend([rows.task_row(one, request) for one in after.tasks])
        self._piles[attempts].inserts.extend([rows.attempt_row(one, request) for one in after.attempts])

    def add(self, stored: Stored, after: RequestState) -> Stored:
        """Note what differs from the stored state, its records noted before; what will be stored then.

        What a state no longer has stays stored. Whatever is written of a request counts its
        version up.
        """
        before, request = stored.state, after.request
        noted = (
            request is not before.request and request != before.request,
            request.request_id in self._recorded,
            self._note(intents, before.intents, after.intents, request, rows.intent_row),
            self._note(tasks, before.tasks, after.tasks, request, rows.task_row),
            self._note(attempts, before.attempts, after.attempts, request, rows.attempt_row),
        )
        if not any(noted):
            return stored
        version = stored.version + 1
        row = rows.request_row(request)
        self._piles[requests].updates.append((*_CHANGED[requests](row), version))
        status, until_ms = before.request.status, stored.claimed_until_ms
        self.guards.append(Guard(request.request_id, stored.version, status, until_ms))
        return Stored(after, version)

    def add_records(self, step: Step) -> None:
        """Note the results and decisions that go with one step, and what it hands to people."""
        if not (step.results or step.decisions or step.partials or step.handoffs):
            return
        request, now_ms = step.state.request, self._now_ms
        caller = request.caller
        self._recorded.add(request.request_id)
        self._piles[results].inserts.extend([rows.result_row(r, caller, now_ms) for r in step.results])
        self._piles[decisions].inserts.extend([rows.decision_row(d, caller, now_ms) for d in step.decisions])
        self._piles[partials].inserts.extend([rows.partial_row(p, caller, now_ms) for p in step.partials])
        self._piles[handoffs].inserts.extend([rows.handoff_row(h, caller) for h in step.handoffs])

    async def write(self, connection: AsyncConnection) -> None:
        """Write everything noted, whatever the guards say: under locks, or what is new."""
        for table, pile in self.rows():
            if pile.inserts:
                plain = _INSERTS[table]
                chosen = _UNLESS_STORED.get((connection.dialect.name, table), plain)
                await connection.execute(chosen, _named(INSERTED[table].names, pile.inserts))
            if pile.updates:
                await connection.execute(_UPDATES[table], _named(_UPDATE_NAMES[table], pile.updates))

    def _note(
        self,
        table: Table,
        before: Sequence[Item],
        after: Sequence[Item],
        request: Request,
        to_row: Callable[[Item, Request], Row],
    ) -> bool:
        if before is after:
            return False
        pile, key = self._piles[table], _ITEM_KEY[table]
        stored = {key(item): item for item in before}
        has_noted = False
        for item in after:
            known = stored.get(key(item))
            if known is None:
                pile.inserts.append(to_row(item, request))
            elif item is not known and item != known:
                pile.updates.append(_CHANGED[table](to_row(item, request)))
            else:
                continue
            has_noted = True
        return has_noted


_REQUEST_NAME = _places(requests, ("caller", "idempotency_key", "request_id"))


def _name(row: Row) -> tuple[str, str, str]:
    """What two new requests may have in common: a lock on one key is waited for in this order."""
    caller, key, request_id = _REQUEST_NAME(row)
    return caller, key or "", request_id


def _named(names: Sequence[str], piled: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in piled]
