"""Groups on PostgreSQL: one statement each, which is its own transaction.

It goes to the driver as it is: building it and reading its answer through SQLAlchemy cost more
than running it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.store.changes import ChangeSet
from dispatcher.store.direct import Written
from dispatcher.store.failure import ConflictError, LostError, driver_failure, translated
from dispatcher.store.grouped_sql import (
    NOW,
    Argument,
    documents,
    guards_document,
    insert_text,
    shape_of,
    update_text,
)

_SETTINGS = (
    "SET default_transaction_isolation = 'read committed'; "
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"
)
"""A plan is kept from when the tables were small: it has to be the one for large tables."""

Arguments = Sequence[Argument]


class PostgresWriter:
    """Implements `DirectWriter`; what it only adds or reads is sent again where its connection was lost.

    `on_lost` is told of every connection that had to be given up: another server may answer from
    then on, without the last commits of this one.
    """

    def __init__(self, engine: AsyncEngine, on_lost: Callable[[], None]) -> None:
        self._engine = engine
        self._on_lost = on_lost
        self._connection: AsyncConnection | None = None
        self._driver: Any = None
        self._was_slow = False
        driver = engine.dialect.dbapi.asyncpg  # type: ignore[union-attr]
        self._errors: tuple[type[Exception], ...] = (
            *(driver.PostgresError, driver.InterfaceError, OSError),
            # What it says of a connection that the server ended while nobody used it.
            driver.InternalClientError,
        )

    async def insert(self, changes: ChangeSet) -> Written:
        """See `DirectWriter.insert`."""
        piles = tuple(changes.rows())
        row, is_repeated = await self._run_again(insert_text(shape_of(piles)), documents(piles))
        return _written(row, is_repeated=is_repeated)

    async def update(self, changes: ChangeSet) -> Written:
        """See `DirectWriter.update`."""
        piles = tuple(changes.rows())
        arguments = [guards_document(changes.guards), *documents(piles)]
        return _written(await self._run(update_text(shape_of(piles)), arguments))

    async def read_now(self) -> int:
        """See `DirectWriter.read_now`."""
        row, _ = await self._run_again(f"SELECT {NOW}", [])
        return int(row[0])

    async def close(self) -> None:
        """See `DirectWriter.close`."""
        connection, self._connection, self._driver = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def _run_again(self, text: str, arguments: Arguments) -> tuple[Sequence[Any], bool]:
        """The statement's row, and whether it was sent twice."""
        try:
            return await self._run(text, arguments), False
        except LostError:
            return await self._run(text, arguments), True

    async def _run(self, text: str, arguments: Arguments) -> Sequence[Any]:
        was_used = self._connection is not None
        with translated():
            try:
                return await self._try(text, arguments)
            except UnavailableError as error:
                if not was_used or self._connection is not None or self._was_slow:
                    raise
                raise LostError(str(error)) from None

    async def _try(self, text: str, arguments: Arguments) -> Sequence[Any]:
        if self._connection is None:
            await self._connect()
        try:
            row: Sequence[Any] = await self._driver.fetchrow(text, *arguments)
        except self._errors as error:
            raise await self._failure(error) from None
        return row

    async def _connect(self) -> None:
        self._connection = await self._engine.connect()
        self._driver = (await self._connection.get_raw_connection()).driver_connection
        try:
            await self._driver.execute(_SETTINGS)
        except self._errors as error:
            raise await self._failure(error) from None

    async def _failure(self, error: Exception) -> DispatcherError:
        """The driver's error as ours; the connection is given up where it can't be used any more."""
        # One that did not answer in time would not answer a repetition either.
        self._was_slow = isinstance(error, TimeoutError)
        failure = driver_failure(error)
        if isinstance(failure, UnavailableError) and not isinstance(failure, ConflictError):
            await self._give_up()
        return failure

    async def _give_up(self) -> None:
        connection, self._connection, self._driver = self._connection, None, None
        self._on_lost()
        if connection is not None:
            await connection.invalidate()
            await connection.close()


def _written(row: Sequence[Any], *, is_repeated: bool = False) -> Written:
    return Written(now_ms=row[0], request_ids=frozenset(row[1]), is_repeated=is_repeated)
