"""Judgements of routing in SQL."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.judgement import Given
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import feedback


class SqlJudgements:
    """Implements `dispatch.judging.JudgementRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, given: Given) -> None:
        """See `JudgementRepository.record`; nothing happens where the request was deleted meanwhile."""
        async with self._database.writing() as connection:
            for judgement in sorted(given.judgements, key=lambda one: one.position):
                row = {
                    "request_id": given.request_id,
                    "position": judgement.position,
                    "caller": given.caller,
                    "verdict": judgement.verdict,
                    "capability": judgement.capability,
                    "given_by": given.given_by,
                    "comment": judgement.comment,
                }
                await connection.execute(_put(connection), row)


def _put(connection: AsyncConnection) -> Any:  # noqa: ANN401  (either dialect's own insert)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    put = dialect.insert(feedback).values(recorded_ms=now_ms())
    changed = {
        name: put.excluded[name] for name in ("verdict", "capability", "given_by", "comment", "recorded_ms")
    }
    return put.on_conflict_do_update(index_elements=["request_id", "position"], set_=changed)
