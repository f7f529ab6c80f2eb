"""Parts with people, in SQL; their rows are made by the transaction that hands them over."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, literal, or_, select, tuple_, update

from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.dispatch.people import CLAIM_S
from dispatcher.identifiers import RequestId, TaskId
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import handoffs, intents, requests, tasks

_OPEN = handoffs.c.answered_ms.is_(None)
_KEY = tuple_(handoffs.c.request_id, handoffs.c.task_id)
_UNPUBLISHED = and_(handoffs.c.published_ms.is_(None), _OPEN, handoffs.c.publish_error.is_(None))
"""Word for word what the partial index has, or it is not used."""
_TASK = and_(tasks.c.request_id == handoffs.c.request_id, tasks.c.task_id == handoffs.c.task_id)
_INTENT = and_(intents.c.request_id == tasks.c.request_id, intents.c.position == tasks.c.position)
_ALL: Select[Any] = (
    select(
        handoffs,
        intents.c.text,
        requests.c.language,
        requests.c.environment,
        tasks.c.finished_ms.label("handed_ms"),
    )
    .join(requests, requests.c.request_id == handoffs.c.request_id)
    .join(tasks, _TASK)
    .join(intents, _INTENT)
)
# Request ids sort by their time.
_OLDEST_FIRST = (handoffs.c.request_id, handoffs.c.task_id)


class SqlHandoffs:
    """Implements `dispatch.people.HandoffRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        """See `HandoffRepository.list`."""
        query = _answered(after) if answered else _open(after)
        return await self._read(query.limit(limit))

    async def count_open(self) -> int:
        """See `HandoffRepository.count_open`."""
        async with self._database.asking() as connection:
            counted = await connection.execute(select(func.count()).select_from(handoffs).where(_OPEN))
            return int(counted.scalar_one())

    async def of_request(self, request_id: RequestId) -> Sequence[Handoff]:
        """See `HandoffRepository.of_request`."""
        return await self._read(_ALL.where(handoffs.c.request_id == request_id))

    async def find(self, task_id: TaskId) -> Handoff | None:
        """See `HandoffRepository.find`."""
        found = await self._read(_ALL.where(*_is(task_id)))
        return found[0] if found else None

    async def answer(self, task_id: TaskId, answer: str, by: str) -> bool:
        """See `HandoffRepository.answer`."""
        change = update(handoffs).where(*_is(task_id), _OPEN)
        said = change.values(answer=answer, answered_by=by, answered_ms=now_ms())
        async with self._database.writing() as connection:
            return (await connection.execute(said)).rowcount == 1

    async def claim_unpublished(self, limit: int) -> Sequence[Handoff]:
        """See `HandoffRepository.claim_unpublished`."""
        free = or_(handoffs.c.claimed_until_ms.is_(None), handoffs.c.claimed_until_ms <= now_ms())
        waiting = select(handoffs.c.request_id, handoffs.c.task_id).where(_UNPUBLISHED, free)
        async with self._database.asking() as connection:
            if (await connection.execute(waiting.limit(1))).first() is None:
                return ()  # as good as always: nobody else waits for this turn to write
        # What another replica claims at this moment is not waited for (PostgreSQL).
        oldest = waiting.order_by(*_OLDEST_FIRST).limit(limit)
        picked = oldest.with_for_update(skip_locked=True).cte("picked")
        claim = update(handoffs).where(_KEY.in_(select(picked))).returning(*handoffs.primary_key)
        until = claim.values(claimed_until_ms=now_ms() + CLAIM_S * 1000)
        async with self._database.writing() as connection:
            keys = [tuple(row) for row in await connection.execute(until)]
            claimed = _ALL.where(_KEY.in_(keys)).order_by(*_OLDEST_FIRST)
            return [_to_handoff(row) for row in (await connection.execute(claimed)).mappings()]

    async def give_back(self, task_ids: Sequence[TaskId]) -> None:
        """See `HandoffRepository.give_back`."""
        keys = [(_request_of(task_id), task_id) for task_id in task_ids]
        change = update(handoffs).where(_KEY.in_(keys), handoffs.c.published_ms.is_(None))
        async with self._database.writing() as connection:
            await connection.execute(change.values(claimed_until_ms=None))

    async def mark_published(self, task_id: TaskId) -> None:
        """See `HandoffRepository.mark_published`."""
        change = update(handoffs).where(*_is(task_id), handoffs.c.published_ms.is_(None))
        async with self._database.writing() as connection:
            await connection.execute(change.values(published_ms=now_ms()))

    async def mark_unpublishable(self, task_id: TaskId, reason: str) -> None:
        """See `HandoffRepository.mark_unpublishable`."""
        change = update(handoffs).where(*_is(task_id)).values(publish_error=reason)
        async with self._database.writing() as connection:
            await connection.execute(change)

    async def _read(self, query: Select[Any]) -> Sequence[Handoff]:
        async with self._database.reading() as connection:
            return [_to_handoff(row) for row in (await connection.execute(query)).mappings()]


def _is(task_id: TaskId) -> tuple[ColumnElement[bool], ...]:
    """By its whole key."""
    return handoffs.c.request_id == _request_of(task_id), handoffs.c.task_id == task_id


def _request_of(task_id: TaskId) -> str:
    """A task's id begins with its request's."""
    return task_id.rpartition(".")[0]


def _open(after: TaskId | None) -> Select[Any]:
    query = _ALL.where(_OPEN).order_by(*_OLDEST_FIRST)
    return query if after is None else query.where(tuple_(literal(_request_of(after)), literal(after)) < _KEY)


def _answered(after: TaskId | None) -> Select[Any]:
    query = _ALL.where(~_OPEN).order_by(handoffs.c.answered_ms.desc(), handoffs.c.task_id.desc())
    if after is None:
        return query
    told = handoffs.alias("told")
    mine = (told.c.request_id == _request_of(after), told.c.task_id == after)
    answered_ms = select(told.c.answered_ms).where(*mine).scalar_subquery()
    return query.where(
        tuple_(handoffs.c.answered_ms, handoffs.c.task_id) < tuple_(answered_ms, literal(after))
    )


def _to_handoff(row: RowMapping) -> Handoff:
    return Handoff(**{name: row[name] for name in Handoff.__struct_fields__})
