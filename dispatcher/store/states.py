"""Reads the states of many requests at a time, locked for a change or not."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import RowMapping, Select, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.request import RequestState
from dispatcher.identifiers import RequestId
from dispatcher.store import rows
from dispatcher.store.tables import attempts, intents, requests, tasks

Item = TypeVar("Item")


async def load_states(
    connection: AsyncConnection, request_ids: Iterable[RequestId], *, locked: bool = False
) -> dict[RequestId, RequestState]:
    """The states of those requests that exist.

    `locked` keeps requests and attempts from being changed or claimed elsewhere until the
    transaction ends (on SQLite the transaction itself does). Locks are taken in key order, so
    that transactions wait for one another in one direction only and can't deadlock.
    """
    wanted = padded(request_ids)
    found = await _fetch(connection, _by_key(requests, wanted, locked=locked))
    if not found:
        return {}
    parts = [
        _grouped(await _fetch(connection, _by_key(table, wanted, locked=locked and table is attempts)))
        for table in (intents, tasks, attempts)
    ]
    return {row["request_id"]: _to_state(row, *(part[row["request_id"]] for part in parts)) for row in found}


def padded(keys: Iterable[Item]) -> list[Item]:
    """The keys in order, the last one repeated up to a power of two.

    A statement's text depends on their number: this leaves a handful of texts, so that the
    database keeps them prepared.
    """
    ordered = sorted(set(keys))  # type: ignore[type-var]
    size = 1 << max(len(ordered) - 1, 0).bit_length()
    return ordered + ordered[-1:] * (size - len(ordered))


def _by_key(table: Table, request_ids: Sequence[RequestId], *, locked: bool) -> Select[Any]:
    query = select(table).where(table.c.request_id.in_(request_ids)).order_by(*table.primary_key)
    return query.with_for_update(key_share=True) if locked else query


async def _fetch(connection: AsyncConnection, query: Select[Any]) -> Sequence[RowMapping]:
    found: Sequence[RowMapping] = (await connection.execute(query)).mappings().all()
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
