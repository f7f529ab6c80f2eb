import asyncio

import pytest
from alembic import command
from sqlalchemy import Connection, inspect, text

from dispatcher.errors import ConfigurationError
from dispatcher.store.engine import open_engine
from dispatcher.store.schema import check_current, config_for, downgrade, upgrade
from dispatcher.store.tables import metadata


async def table_names(url: str) -> set[str]:
    async with open_engine(url) as database, database.reading() as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


async def set_revision(url: str, revision: str) -> None:
    async with open_engine(url) as database, database.writing() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})


async def test_upgrading_makes_every_table_and_going_back_removes_them(empty_url: str):
    await upgrade(empty_url)
    made = await table_names(empty_url)
    await downgrade(empty_url, "base")
    left = await table_names(empty_url)
    await upgrade(empty_url)

    assert made == {*metadata.tables, "alembic_version"}
    assert left == {"alembic_version"}
    assert await table_names(empty_url) == made


async def test_the_migrations_make_exactly_the_tables_of_the_code(ledger_url: str):
    def check(connection: Connection) -> None:
        command.check(config_for(connection))

    async with open_engine(ledger_url) as database, database.writing() as connection:
        await connection.run_sync(check)


async def test_replicas_that_upgrade_at_once_do_not_disturb_one_another(empty_url: str):
    await asyncio.gather(*(upgrade(empty_url) for _ in range(3)))

    async with open_engine(empty_url) as database:
        await check_current(database)


@pytest.mark.parametrize(("revision", "reason"), [("9999", "newer"), (None, "no schema")])
async def test_a_schema_of_another_version_is_refused(ledger_url: str, revision: str | None, reason: str):
    if revision is None:
        await downgrade(ledger_url, "base")
    else:
        await set_revision(ledger_url, revision)

    async with open_engine(ledger_url) as database:
        with pytest.raises(ConfigurationError, match=reason):
            await check_current(database)


async def test_a_database_that_the_server_does_not_have_is_named(postgres_url: str):
    server, _, _ = postgres_url.rpartition("/")

    with pytest.raises(ConfigurationError, match="'no_such_database'"):
        await upgrade(f"{server}/no_such_database")
