"""Deletes what is no longer to be kept: by age, or everything of one user.

Only requests that have ended are touched, a bounded number per transaction; a request's own row
takes everything below it along.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import ColumnElement, Table, and_, delete, func, select, tuple_

from dispatcher.dispatch.lifecycle.request import RequestStatus
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import CallerId, RequestId
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.states import padded
from dispatcher.store.tables import dead_frames, decisions, requests, results, sessions

BATCH = 500
_DAY_MS = 24 * 3600 * 1000
_PRUNED: Mapping[str, Table] = MappingProxyType({t.name: t for t in (decisions, results, requests)})
_ALONE: Mapping[str, ColumnElement[int]] = MappingProxyType(
    {sessions.name: sessions.c.changed_ms, dead_frames.name: dead_frames.c.recorded_ms}
)
"""Tables whose rows hang on no request, with what their age counts from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many requests of a user were deleted, and how many still run and were left."""

    deleted: int
    still_open: int


async def prune(database: Database, keep: Mapping[str, float], *, batch: int = BATCH) -> dict[str, int]:
    """Delete rows of requests that ended more than `keep[table]` days ago; the number per table.

    Tables are `requests` (with everything below them), `decisions`, `results`, `sessions` (by their
    last change) and `dead_frames`; one that `keep` does not name is left alone. `batch` is the most
    requests in one transaction. Stopped half-way, what is deleted stays deleted.
    """
    known = _PRUNED.keys() | _ALONE.keys()
    unknown = keep.keys() - known
    if unknown:
        raise ConfigurationError(f"no retention is defined for {sorted(unknown)}; use {sorted(known)}")
    deleted = {
        name: await _prune(database, table, keep[name], batch)
        for name, table in _PRUNED.items()
        if name in keep
    }
    for name, since in _ALONE.items():
        if name in keep:
            deleted[name] = await _prune_alone(database, since, keep[name])
    return deleted


async def forget(database: Database, user_id: str, caller: CallerId | None = None) -> Forgotten:
    """Delete everything of one user, of one caller or of all.

    Requests that are still running are counted and left, since an accepted request must end
    (I1); they end by their deadline, so calling again afterwards removes them too.
    """
    theirs = requests.c.user_id == user_id
    if caller is not None:
        theirs = and_(theirs, requests.c.caller == caller)
    deleted = 0
    async for page in _ended(database, theirs, BATCH):
        deleted += await _delete(database, requests, page)
    async with database.writing() as connection:
        await connection.execute(delete(sessions).where(*_sessions_of(user_id, caller)))
    running = select(func.count()).select_from(requests).where(theirs, requests.c.finished_ms.is_(None))
    async with database.reading() as connection:
        still_open: int = (await connection.execute(running)).scalar_one()
    return Forgotten(deleted=deleted, still_open=still_open)


def _sessions_of(user_id: str, caller: CallerId | None) -> tuple[ColumnElement[bool], ...]:
    theirs = sessions.c.user_id == user_id
    return (theirs,) if caller is None else (theirs, sessions.c.caller == caller)


async def _prune_alone(database: Database, since: ColumnElement[int], days: float) -> int:
    too_old = since < now_ms() - round(days * _DAY_MS)
    async with database.writing() as connection:
        return (await connection.execute(delete(since.table).where(too_old))).rowcount


async def _prune(database: Database, table: Table, days: float, batch: int) -> int:
    too_old = requests.c.finished_ms < now_ms() - round(days * _DAY_MS)
    deleted = 0
    async for page in _ended(database, too_old, batch):
        deleted += await _delete(database, table, page)
    return deleted


async def _ended(
    database: Database, chosen: ColumnElement[bool], batch: int
) -> AsyncIterator[list[RequestId]]:
    """Pages of chosen requests that have ended, oldest first; each row is visited once."""
    order = (requests.c.finished_ms, requests.c.request_id)
    query = (
        select(*order).where(chosen, requests.c.status != RequestStatus.OPEN).order_by(*order).limit(batch)
    )
    after = (-1, "")
    while True:
        async with database.reading() as connection:
            page = (await connection.execute(query.where(tuple_(*order) > after))).all()
        if not page:
            return
        yield [RequestId(row.request_id) for row in page]
        after = (page[-1].finished_ms, page[-1].request_id)


async def _delete(database: Database, table: Table, request_ids: list[RequestId]) -> int:
    chosen = padded(request_ids)
    async with database.writing() as connection:
        # Locked in key order like every change of a request, so that neither can deadlock the other.
        await connection.execute(
            select(requests.c.request_id)
            .where(requests.c.request_id.in_(chosen))
            .order_by(requests.c.request_id)
            .with_for_update()
        )
        deleted = await connection.execute(delete(table).where(table.c.request_id.in_(chosen)))
    return deleted.rowcount
