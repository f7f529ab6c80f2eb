"""Sessions: what a conversation remembers, one row each, changed under its lock."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.session import Question, Remembered, Session, SessionChange, apply
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.failure import ConflictError
from dispatcher.store.tables import sessions

logger = logging.getLogger(__name__)


async def read_session(database: Database, caller: CallerId, session_id: str) -> Session:
    """See `Ledger.read_session`."""
    async with database.reading() as connection:
        return await _read(connection, caller, session_id, locked=False)


async def write_sessions(connection: AsyncConnection, changes: Sequence[SessionChange]) -> None:
    """Apply changes in order of arrival, sessions in key order so that transactions can't deadlock."""
    for caller, session_id in sorted({(change.caller, change.session_id) for change in changes}):
        await connection.execute(_insert(connection), _new_row(caller, session_id))
        session = await _read(connection, caller, session_id, locked=True)
        for change in changes:
            if (change.caller, change.session_id) == (caller, session_id):
                session = _applied(session, change)
        mark = update(sessions).where(*_is(caller, session_id))
        await connection.execute(mark.values(**_to_row(session), changed_ms=now_ms()))


async def remember(database: Database, changes: Sequence[SessionChange]) -> None:
    """Apply changes in a transaction of their own; a failure is logged and changes nothing."""
    try:
        async with database.writing() as connection:
            await write_sessions(connection, changes)
    except (UnavailableError, ConflictError) as error:
        logger.warning("session.not_written", extra={"changes": len(changes), "error": type(error).__name__})


def _applied(session: Session, change: SessionChange) -> Session:
    applied = apply(session, change)
    if applied.conflicts:
        logger.info("session.conflict", extra={"caller": change.caller, "keys": list(applied.conflicts)})
    if applied.too_large:
        logger.warning("session.too_large", extra={"caller": change.caller})
    return applied.session


async def _read(connection: AsyncConnection, caller: CallerId, session_id: str, *, locked: bool) -> Session:
    query = select(sessions).where(*_is(caller, session_id))
    found = await connection.execute(query.with_for_update() if locked else query)
    row = found.mappings().first()
    return Session(caller=caller, session_id=session_id) if row is None else _to_session(row)


def _is(caller: CallerId, session_id: str) -> tuple[Any, ...]:
    return sessions.c.caller == caller, sessions.c.session_id == session_id


def _insert(connection: AsyncConnection) -> Any:  # noqa: ANN401  (either dialect's own insert)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(sessions).on_conflict_do_nothing()


def _new_row(caller: CallerId, session_id: str) -> Mapping[str, object]:
    empty = Session(caller=caller, session_id=session_id)
    return {"caller": caller, "session_id": session_id, "changed_ms": 0, **_to_row(empty)}


def _to_row(session: Session) -> dict[str, object]:
    return {
        "user_id": session.user_id,
        "version": session.version,
        "context": {key: [kept.value, kept.version] for key, kept in session.context.items()},
        "questions": [_to_document(question) for question in session.questions],
        "texts": session.texts,
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
        texts=tuple(row["texts"]),
    )


def _to_question(asked: Mapping[str, Any]) -> Question:
    """The question of a stored document; members of later versions are ignored."""
    known = {name: value for name, value in asked.items() if name in Question.__slots__}
    options = tuple((Capability(name), similarity) for name, similarity in asked.get("options", ()))
    fields = tuple(asked["fields"])
    return Question(
        **known | {"fields": fields, "capability": Capability(asked["capability"]), "options": options}
    )
