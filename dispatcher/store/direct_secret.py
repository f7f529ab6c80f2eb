"""The secret behind direct calls, in SQL."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.registry.direct_book import StoredSecret
from dispatcher.store.column import now_ms
from dispatcher.store.engine import Database
from dispatcher.store.tables import direct_secret

_ROW = 1
_READ = select(direct_secret.c.secret, now_ms()).where(direct_secret.c.row_id == _ROW)


class SqlDirectSecret:
    """Implements `registry.direct_book.SecretRepository`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def secret(self, fresh: bytes) -> StoredSecret:
        """See `SecretRepository.secret`. Of several replicas that find none, one's becomes it."""
        async with self._database.reading() as connection:
            found = (await connection.execute(_READ)).first()
        if found is None:
            async with self._database.writing() as connection:
                row = {"row_id": _ROW, "secret": fresh.hex(), "made_ms": now_ms()}
                await connection.execute(_insert(connection).values(row))
                found = (await connection.execute(_READ)).one()
        return StoredSecret(secret=bytes.fromhex(found[0]), now_ms=found[1])


def _insert(connection: AsyncConnection) -> Any:  # noqa: ANN401  (either dialect's own insert)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(direct_secret).on_conflict_do_nothing()
