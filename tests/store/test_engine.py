from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from dispatcher.errors import ConfigurationError, DispatcherError, UnavailableError
from dispatcher.store.engine import Database, open_engine


async def pragmas(engine: AsyncEngine) -> dict[str, object]:
    names = ("journal_mode", "synchronous", "foreign_keys", "query_only")
    async with engine.connect() as connection:
        return {name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar() for name in names}


async def make_one_table_and_fail(database: Database) -> None:
    async with database.writing() as connection:
        await connection.exec_driver_sql("CREATE TABLE kept (a)")
        await connection.exec_driver_sql("INSERT INTO missing VALUES (1)")


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+aiosqlite"])
async def test_sqlite_syncs_every_commit_and_checks_references(tmp_path: Path, scheme: str):
    async with open_engine(f"{scheme}:///{tmp_path / 'a.db'}") as database:
        written = await pragmas(database.writes)
        read = await pragmas(database.reads)

    full = 2
    assert written == {"journal_mode": "wal", "synchronous": full, "foreign_keys": 1, "query_only": 0}
    assert read == written | {"query_only": 1}


async def test_an_error_inside_a_transaction_undoes_it(tmp_path: Path):
    async with open_engine(f"sqlite:///{tmp_path / 'a.db'}") as database:
        with pytest.raises(DispatcherError):
            await make_one_table_and_fail(database)
        async with database.reading() as connection:
            tables = await connection.exec_driver_sql("SELECT name FROM sqlite_master")

    assert tables.all() == []


async def test_reading_connections_cannot_write(tmp_path: Path):
    async with open_engine(f"sqlite:///{tmp_path / 'a.db'}") as database:
        with pytest.raises(DispatcherError):
            async with database.reading() as connection:
                await connection.exec_driver_sql("CREATE TABLE refused (a)")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("not a url", "can't be read"),
        ("mysql://root@localhost/x", "'mysql' are not supported"),
        ("sqlite+pysqlite:///x.db", "not supported"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        ("sqlite:////no/such/directory/x.db", "'/no/such/directory' of the SQLite database does not exist"),
        ("sqlite:////proc/x.db", "'/proc/x.db' can't be opened for writing"),
    ],
)
async def test_a_place_that_cannot_be_used_is_named_in_one_sentence(url: str, sentence: str):
    with pytest.raises(ConfigurationError, match=sentence):
        async with open_engine(url):
            pass


async def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at as one " * 10)

    with pytest.raises(ConfigurationError, match=r"notes\.txt"):
        async with open_engine(f"sqlite:///{path}"):
            pass


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.mark.parametrize("parameter", ["mode=ro", "cache=shared&uri=true", "timeout=1"])
async def test_a_file_has_no_parameters(tmp_path: Path, parameter: str):
    name, _, value = parameter.partition("=")

    with pytest.raises(ConfigurationError, match=name) as raised:
        async with open_engine(f"sqlite:///{tmp_path / 'x.db'}?{parameter}"):
            pass

    assert value not in raised.value.message
    assert files(tmp_path) == []


async def test_a_server_that_does_not_answer_is_unavailable():
    with pytest.raises(UnavailableError):
        async with open_engine("postgresql://postgres@127.0.0.1:1/none"):
            pass


async def test_the_usual_name_for_encryption_is_understood():
    with pytest.raises(UnavailableError):
        async with open_engine("postgresql://postgres@127.0.0.1:1/none?sslmode=require"):
            pass


@pytest.mark.parametrize("parameter", ["sslmode=nonsense", "application_name=x"])
async def test_a_parameter_that_cannot_be_used_is_named_without_its_value(parameter: str):
    name, _, value = parameter.partition("=")

    with pytest.raises(ConfigurationError, match=name) as raised:
        async with open_engine(f"postgresql://postgres@127.0.0.1:1/none?{parameter}"):
            pass

    assert value not in raised.value.message.replace(name, "")
