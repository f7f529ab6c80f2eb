"""Dead letters: tasks that ended without success after an attempt, and frames that belong to none."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, Text, cast, func, insert, select

from dispatcher.dispatch.lifecycle.ledger import DeadEntry, DeadQuery
from dispatcher.dispatch.lifecycle.request import DeadFrame, TaskStatus
from dispatcher.identifiers import AgentId, CallerId, Capability, RequestId
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import attempts, dead_frames, tasks

_REPEATS = tasks.alias("repeats")
_KEY = func.coalesce(tasks.c.idempotency_key, tasks.c.request_id + ":" + cast(tasks.c.position, Text))
"""As `identifiers.idempotency_key` makes it."""
_DEAD = tasks.c.status.in_((TaskStatus.FAILED, TaskStatus.UNAVAILABLE, TaskStatus.OUTCOME_UNKNOWN))


async def bury(database: Database, frame: DeadFrame) -> None:
    """See `Ledger.bury`."""
    row = {name: getattr(frame, name) for name in DeadFrame.__struct_fields__}
    async with database.writing() as connection:
        await connection.execute(insert(dead_frames).values(**row, recorded_ms=now_ms()))


async def dead(database: Database, wanted: DeadQuery) -> Sequence[DeadEntry]:
    """See `Ledger.dead`."""
    async with database.reading() as connection:
        found = [_of_task(row) for row in (await connection.execute(_tasks(wanted))).mappings()]
        if wanted.agent_id is None and wanted.capability is None:
            query = _frames(wanted)
            found += [_of_frame(row) for row in (await connection.execute(query)).mappings()]
    found.sort(key=lambda entry: (entry.ended_ms, entry.dead_id), reverse=True)
    return found[: wanted.limit]


def _tasks(wanted: DeadQuery) -> Select[Any]:
    number = select(func.count()).where(
        attempts.c.request_id == tasks.c.request_id, attempts.c.task_id == tasks.c.task_id
    )
    attempted = number.scalar_subquery()
    same = select(_REPEATS.c.request_id).where(
        _REPEATS.c.idempotency_key == _KEY, _REPEATS.c.repeat > tasks.c.repeat
    )
    newest = same.order_by(_REPEATS.c.repeat.desc()).limit(1).scalar_subquery()
    query = (
        select(tasks, attempted.label("attempts"), newest.label("retried_as"), now_ms().label("now_ms"))
        .where(_DEAD, attempted > 0, *_filters(wanted, tasks.c.error_code))
        .order_by(tasks.c.finished_ms.desc(), tasks.c.task_id.desc())
        .limit(wanted.limit)
    )
    if wanted.dead_id is not None:
        query = query.where(tasks.c.task_id == wanted.dead_id)
    if wanted.agent_id is not None:
        query = query.where(tasks.c.agent_id == wanted.agent_id)
    if wanted.capability is not None:
        query = query.where(tasks.c.capability == wanted.capability)
    return query if wanted.retried else query.where(newest.is_(None))


def _frames(wanted: DeadQuery) -> Select[Any]:
    query = (
        select(dead_frames, now_ms().label("now_ms"))
        .where(*_filters(wanted, dead_frames.c.reason))
        .order_by(dead_frames.c.recorded_ms.desc(), dead_frames.c.dead_id.desc())
        .limit(wanted.limit)
    )
    return query if wanted.dead_id is None else query.where(dead_frames.c.dead_id == wanted.dead_id)


def _filters(wanted: DeadQuery, code: ColumnElement[str | None]) -> tuple[ColumnElement[bool], ...]:
    if wanted.codes is None:
        return ()
    codes = sorted(wanted.codes)
    return (func.coalesce(code, "").not_in(codes) if wanted.excluded else code.in_(codes),)


def _of_task(row: RowMapping) -> DeadEntry:
    return DeadEntry(
        dead_id=row["task_id"],
        ended_ms=row["finished_ms"],
        age_ms=row["now_ms"] - row["finished_ms"],
        error_code=row["error_code"],
        caller=CallerId(row["caller"]),
        request_id=RequestId(row["request_id"]),
        capability=Capability(row["capability"]) if row["capability"] else None,
        agent_id=AgentId(row["agent_id"]) if row["agent_id"] else None,
        status=TaskStatus(row["status"]),
        attempts=row["attempts"],
        retried_as=RequestId(row["retried_as"]) if row["retried_as"] else None,
        retries=row["repeat"],
    )


def _of_frame(row: RowMapping) -> DeadEntry:
    frame = DeadFrame(**{name: row[name] for name in DeadFrame.__struct_fields__})
    return DeadEntry(
        dead_id=frame.dead_id,
        ended_ms=row["recorded_ms"],
        age_ms=row["now_ms"] - row["recorded_ms"],
        error_code=frame.reason,
        frame=frame,
    )
