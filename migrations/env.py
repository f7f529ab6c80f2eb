"""Run by Alembic: on the connection that `dispatcher.store.schema` hands over, or on `-x url=...`."""

import asyncio

from alembic import context
from sqlalchemy import Connection

from dispatcher.store.engine import open_engine
from dispatcher.store.tables import metadata


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


async def migrate_by_url(url: str) -> None:
    async with open_engine(url) as database, database.writing() as connection:
        await connection.run_sync(migrate)


given = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    asyncio.run(migrate_by_url(context.get_x_argument(as_dictionary=True)["url"]))
