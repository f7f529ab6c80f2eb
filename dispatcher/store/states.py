"""Reads the states of many requests at a time, locked for a change or not."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import RowMapping, Select, Table, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.identifiers import RequestId
from dispatcher.store import rows
from dispatcher.store.engine import Database
from dispatcher.store.recent import Stored
from dispatcher.store.tables import attempts, intents, requests, tasks

Item = TypeVar("Item")

# Built once: composing a query anew costs a quarter of running it.
_PLAIN: dict[Table, Select[Any]] = {
    table: select(table)
    .where(table.c.request_id.in_(bindparam("request_ids", expanding=True)))
    .order_by(*table.primary_key)
    for table in (requests, intents, tasks, attempts)
}
_LOCKING = _PLAIN | {table: _PLAIN[table].with_for_update(key_share=True) for table in (requests, attempts)}


async def read_group(database: Database, request_ids: Sequence[RequestId]) -> list[RequestState | None]:
    """The committed states of these requests, all as of one moment; None for one that does not exist."""
    found = await read_stored(database, request_ids)
    states = {request_id: stored.state for request_id, stored in found.items()}
    return [states.get(request_id) for request_id in request_ids]


async def read_stored(database: Database, request_ids: Iterable[RequestId]) -> dict[RequestId, Stored]:
    """The committed states of those requests that exist, with their versions."""
    async with database.reading() as connection:
        return await load_states(connection, request_ids)


async def load_states(
    connection: AsyncConnection, request_ids: Iterable[RequestId], *, locked: bool = False
) -> dict[RequestId, Stored]:
    """The states of those requests that exist.

    `locked` keeps requests and attempts from being changed or claimed elsewhere until the
    transaction ends (on SQLite the transaction itself does). Locks are taken in key order, so
    that transactions wait for one another in one direction only and can't deadlock.
    """
    wanted = padded(request_ids)
    queries = _LOCKING if locked else _PLAIN
    found = await _fetch(connection, queries[requests], wanted)
    if not found:
        return {}
    parts = [
        _grouped(await _fetch(connection, queries[table], wanted)) for table in (intents, tasks, attempts)
    ]
    return {
        row["request_id"]: Stored(
            _to_state(row, *(part[row["request_id"]] for part in parts)), row["version"]
        )
        for row in found
    }


def padded(keys: Iterable[Item]) -> list[Item]:
    """The keys in order, the last one repeated up to a power of two.

    A statement's text depends on their number: this leaves a handful of texts, so that the
    database keeps them prepared.
    """
    ordered = sorted(set(keys))  # type: ignore[type-var]
    size = 1 << max(len(ordered) - 1, 0).bit_length()
    return ordered + ordered[-1:] * (size - len(ordered))


async def _fetch(
    connection: AsyncConnection, query: Select[Any], request_ids: Sequence[RequestId]
) -> Sequence[RowMapping]:
    rows_found = await connection.execute(query, {"request_ids": request_ids})
    found: Sequence[RowMapping] = rows_found.mappings().all()
    return found


def _grouped(found: Sequence[RowMapping]) -> defaultdict[str, list[RowMapping]]:
    groups: defaultdict[str, list[RowMapping]] = defaultdict(list)
    for row in found:
        groups[row["request_id"]].append(row)
    return groups


def _to_state(
    request: RowMapping,
    intent_rows: list[RowMapping],
    task_rows: list[RowMapping],
    attempt_rows: list[RowMapping],
) -> RequestState:
    position = {row["task_id"]: row["position"] for row in task_rows}
    return RequestState(
        request=rows.to_request(request),
        intents=tuple(rows.to_intent(row) for row in intent_rows),
        tasks=tuple(rows.to_task(row) for row in sorted(task_rows, key=lambda row: row["position"])),
        attempts=tuple(
            rows.to_attempt(row)
            for row in sorted(attempt_rows, key=lambda row: (position[row["task_id"]], row["number"]))
        ),
    )
