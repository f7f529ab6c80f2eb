"""Sessions: what a conversation remembers, one row each, changed under its lock."""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, bindparam, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.session import Question, Remembered, Session, SessionChange, apply
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.records import asdict
from dispatcher.store.column import now_ms, stored_words
from dispatcher.store.engine import Database
from dispatcher.store.tables import sessions

logger = logging.getLogger(__name__)


class _Key(NamedTuple):
    caller: CallerId
    session_id: str


_KEYS = (sessions.c.caller, sessions.c.session_id)
_LOCKED = (
    select(sessions)
    .where(tuple_(*_KEYS).in_(bindparam("keys", expanding=True)))
    .order_by(*_KEYS)
    .with_for_update()
)
"""Everybody locks in the one order, so that transactions can't deadlock."""
_FOUND_ON_SQLITE = select(sessions).where(
    tuple_(*_KEYS).in_(bindparam("keys", expanding=True)),
    sessions.c.caller.in_(bindparam("callers", expanding=True)),
    sessions.c.session_id.in_(bindparam("session_ids", expanding=True)),
)
"""SQLite uses no index for pairs, but one for their halves."""
_CHANGED = (
    update(sessions)
    .where(*(column == bindparam(f"of_{column.name}") for column in _KEYS))
    .values({name: bindparam(name) for name in ("user_id", "version", "context", "questions", "topics")})
    .values(changed_ms=now_ms())
)


async def read_session(database: Database, caller: CallerId, session_id: str) -> Session:
    """See `Ledger.read_session`."""
    query = select(sessions).where(sessions.c.caller == caller, sessions.c.session_id == session_id)
    async with database.reading() as connection:
        found = (await connection.execute(query)).mappings().first()
    return Session(caller=caller, session_id=session_id) if found is None else _to_session(found)


async def write_sessions(connection: AsyncConnection, changes: Sequence[SessionChange]) -> None:
    """Apply changes in order of arrival, in three statements however many sessions they are of."""
    if not changes:
        return
    of_key: dict[_Key, list[SessionChange]] = defaultdict(list)
    for change in changes:
        of_key[_stored_key(change)].append(change)
    await connection.execute(_insert(connection), [_new_row(key) for key in sorted(of_key)])
    before = await _read_locked(connection, of_key)
    after = [reduce(_applied, of_key[_Key(one.caller, one.session_id)], one) for one in before]
    if after:
        await connection.execute(_CHANGED, [_changed_row(session) for session in after])


async def _read_locked(connection: AsyncConnection, keys: Collection[_Key]) -> list[Session]:
    wanted: dict[str, object] = {"keys": list(keys)}
    query = _LOCKED
    if connection.dialect.name == "sqlite":
        callers, session_ids = zip(*keys, strict=True)
        query, wanted = _FOUND_ON_SQLITE, {**wanted, "callers": callers, "session_ids": session_ids}
    return [_to_session(row) for row in (await connection.execute(query, wanted)).mappings()]


async def write_group(database: Database, changes: Sequence[SessionChange]) -> list[None]:
    """Apply changes in a transaction of their own."""
    async with database.writing() as connection:
        await write_sessions(connection, changes)
    return [None] * len(changes)


async def remember(write: Callable[[SessionChange], Awaitable[None]], change: SessionChange) -> None:
    """Have a change written if that is possible; never raises: its request was accepted before."""
    try:
        await write(change)
    except UnavailableError as error:
        logger.warning("session.not_written", extra={"error": type(error).__name__})
    except Exception:
        logger.exception("session.not_written")


def _applied(session: Session, change: SessionChange) -> Session:
    applied = apply(session, change)
    if applied.conflicts or applied.is_late:
        logger.info("session.conflict", extra={"caller": change.caller, "keys": list(applied.conflicts)})
    if applied.too_large:
        logger.warning("session.too_large", extra={"caller": change.caller})
    return applied.session


def _insert(connection: AsyncConnection) -> Any:  # noqa: ANN401  (either dialect's own insert)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(sessions).on_conflict_do_nothing()


def _stored_key(change: SessionChange) -> _Key:
    return _Key(change.caller, stored_words(change.session_id) or "")


def _new_row(key: _Key) -> dict[str, object]:
    empty = Session(caller=key.caller, session_id=key.session_id)
    return {**key._asdict(), "changed_ms": 0, **_to_row(empty)}


def _changed_row(session: Session) -> dict[str, object]:
    return {"of_caller": session.caller, "of_session_id": session.session_id, **_to_row(session)}


def _to_row(session: Session) -> dict[str, object]:
    return {
        "user_id": session.user_id,
        "version": session.version,
        "context": {key: [kept.value, kept.version] for key, kept in session.context.items()},
        "questions": [_to_document(question) for question in session.questions],
        "topics": session.topics,
    }


def _to_document(question: Question) -> dict[str, object]:
    """A question as it is stored; one without options as replicas read it that know of none."""
    document = asdict(question)
    if not question.options:
        del document["options"]
    return document


def _to_session(row: RowMapping) -> Session:
    return Session(
        caller=row["caller"],
        session_id=row["session_id"],
        user_id=row["user_id"],
        version=row["version"],
        context={
            key: Remembered(value=value, version=version) for key, (value, version) in row["context"].items()
        },
        questions=tuple(_to_question(asked) for asked in row["questions"]),
        topics=tuple(row["topics"]),
    )


def _to_question(asked: Mapping[str, Any]) -> Question:
    """The question of a stored document; members of later versions are ignored."""
    known = {name: value for name, value in asked.items() if name in Question.__struct_fields__}
    options = tuple((Capability(name), similarity) for name, similarity in asked.get("options", ()))
    fields = tuple(asked["fields"])
    return Question(
        **known | {"fields": fields, "capability": Capability(asked["capability"]), "options": options}
    )
