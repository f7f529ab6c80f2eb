"""Parts with people, in SQL; their rows are made by the transaction that hands them over."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, select, update

from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.identifiers import RequestId, TaskId
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import handoffs, intents, requests, tasks

_OPEN = handoffs.c.answered_ms.is_(None)
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

    async def list(self, *, answered: bool, limit: int) -> Sequence[Handoff]:
        """See `HandoffRepository.list`."""
        latest = (handoffs.c.answered_ms.desc(), handoffs.c.task_id.desc())
        query = (
            _ALL.where(~_OPEN).order_by(*latest) if answered else _ALL.where(_OPEN).order_by(*_OLDEST_FIRST)
        )
        return await self._read(query.limit(limit))

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

    async def unpublished(self, limit: int) -> Sequence[Handoff]:
        """See `HandoffRepository.unpublished`."""
        waiting = _ALL.where(_OPEN, handoffs.c.published_ms.is_(None))
        return await self._read(waiting.order_by(*_OLDEST_FIRST).limit(limit))

    async def mark_published(self, task_id: TaskId) -> None:
        """See `HandoffRepository.mark_published`."""
        change = update(handoffs).where(*_is(task_id), handoffs.c.published_ms.is_(None))
        async with self._database.writing() as connection:
            await connection.execute(change.values(published_ms=now_ms()))

    async def _read(self, query: Select[Any]) -> Sequence[Handoff]:
        async with self._database.reading() as connection:
            return [_to_handoff(row) for row in (await connection.execute(query)).mappings()]


def _is(task_id: TaskId) -> tuple[ColumnElement[bool], ...]:
    """By its whole key: a task's id begins with its request's."""
    return handoffs.c.request_id == task_id.rpartition(".")[0], handoffs.c.task_id == task_id


def _to_handoff(row: RowMapping) -> Handoff:
    return Handoff(**{name: row[name] for name in Handoff.__slots__})
