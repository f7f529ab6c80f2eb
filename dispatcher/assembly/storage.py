"""Opening the database at the schema this version needs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.errors import ConfigurationError
from dispatcher.settings import Settings
from dispatcher.store.engine import STATEMENT_S, Database, open_engine
from dispatcher.store.integrity import check_file
from dispatcher.store.schema import check_current, upgrade


@asynccontextmanager
async def open_storage(
    settings: Settings, *, statement_s: float | None = STATEMENT_S
) -> AsyncIterator[Database]:
    """The database at the current schema; SQLite is made or upgraded, PostgreSQL has to be current.

    A statement on a server has `statement_s`, or all the time it needs. Raises ConfigurationError where
    the place can't be used, the file is damaged or the schema does not fit.
    """
    if settings.store_url.startswith("sqlite"):
        await asyncio.to_thread(check_file, settings.store_url)
        await upgrade_storage(settings)
    async with open_engine(settings.store_url, statement_s=statement_s) as database:
        await check_current(database)
        yield database


async def upgrade_storage(settings: Settings) -> None:
    """Bring the schema to this version; raises ConfigurationError like `open_storage`."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise ConfigurationError(f"the data folder {str(settings.data_dir)!r} can't be made") from None
    await upgrade(settings.store_url)
