"""Brings a database to the schema of this code, and refuses to run on another one."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from dispatcher.errors import ConfigurationError
from dispatcher.store.engine import Database, open_engine

_UPGRADE_LOCK = 0x61726473
"""Any constant of our own: one advisory lock lets one replica upgrade while the others wait."""


async def upgrade(url: str) -> None:
    """Bring the database to the newest schema; does nothing where it is there already.

    One transaction: it happens as a whole or not at all. Safe to call from several replicas. Raises
    ConfigurationError where the schema is newer than this code.
    """
    await _run(url, _upgrade)


async def downgrade(url: str, revision: str) -> None:
    """Take the database back to `revision` (`base` removes every table and all data)."""
    await _run(url, lambda _, config: command.downgrade(config, revision))


async def check_current(database: Database) -> None:
    """Return if the database has exactly this code's schema; ConfigurationError says what it has instead."""
    async with database.reading() as connection:
        found = await connection.run_sync(_known_heads)
    if not found:
        raise ConfigurationError("the database has no schema yet; upgrade it first")
    if set(found) != set(_scripts().get_heads()):
        raise ConfigurationError("the database's schema is older than this program; upgrade it first")


def _upgrade(connection: Connection, config: Config) -> None:
    _known_heads(connection)
    command.upgrade(config, "head")


def _known_heads(connection: Connection) -> tuple[str, ...]:
    """The database's revisions; raises ConfigurationError where this code does not know one of them."""
    found = MigrationContext.configure(connection).get_current_heads()
    if not {script.revision for script in _scripts().walk_revisions()}.issuperset(found):
        raise ConfigurationError(
            "the database's schema is newer than this program; install the newer version"
        )
    return found


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def migrations_directory() -> Path:
    """Where the migrations are: inside the installed package, or at the top of the repository."""
    installed = Path(str(resources.files("dispatcher.store"))) / "migrations"
    if installed.is_dir():
        return installed
    return Path(str(resources.files("dispatcher"))).parent / "migrations"


def config_for(connection: Connection) -> Config:
    """Alembic's configuration for running its commands on this connection."""
    config = _config()
    config.attributes["connection"] = connection
    return config


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


async def _run(url: str, step: Callable[[Connection, Config], None]) -> None:
    async with open_engine(url, statement_s=None) as database, database.writing() as connection:
        if database.is_postgres:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        await connection.run_sync(lambda sync: step(sync, config_for(sync)))
