"""Judgements of routing in SQL."""

from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.judgement import Given
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import feedback, requests

_GIVEN = ("position", "caller", "verdict", "capability", "given_by", "comment")
_CHANGED = ("verdict", "capability", "given_by", "comment", "recorded_ms")


class SqlJudgements:
    """Implements `dispatch.judging.JudgementRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, given: Given) -> None:
        """See `JudgementRepository.record`; nothing happens where the request was deleted meanwhile."""
        async with self._database.writing() as connection:
            put = _put(connection)
            for judgement in sorted(given.judgements, key=lambda one: one.position):
                row = {
                    "of_request": given.request_id,
                    "position": judgement.position,
                    "caller": given.caller,
                    "verdict": judgement.verdict.value,
                    "capability": judgement.capability,
                    "given_by": given.given_by,
                    "comment": judgement.comment,
                }
                await connection.execute(put, row)


def _put(connection: AsyncConnection) -> Any:  # noqa: ANN401  (either dialect's own insert)
    """From the request's own row, which is kept from being deleted meanwhile: no foreign key can fail."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    values = [bindparam(name, type_=feedback.c[name].type) for name in _GIVEN]
    of_request = requests.c.request_id == bindparam("of_request")
    rows = select(requests.c.request_id, *values, now_ms()).where(of_request)
    put = dialect.insert(feedback).from_select(
        ["request_id", *_GIVEN, "recorded_ms"], rows.with_for_update(read=True, key_share=True)
    )
    changed = {name: put.excluded[name] for name in _CHANGED}
    return put.on_conflict_do_update(index_elements=["request_id", "position"], set_=changed)
