"""Connections to SQLite or PostgreSQL, bounded in number, with their settings in one place."""

import asyncio
import math
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, Connection, ExceptionContext, event, make_url
from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_connection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from dispatcher.errors import ConfigurationError, DispatcherError, UnavailableError
from dispatcher.store.failure import READ_ONLY_STATE, NotAdmittedError, translated

_DRIVERS = {"sqlite": "aiosqlite", "postgresql": "asyncpg"}
_POSTGRES_CONNECTIONS = 10
"""Per process, beside the two of the direct writers. More callers wait for a free one."""
_SQLITE_READERS = 4
_WAIT_S = 10
"""Longest wait for a free connection, and for a file that another process has locked."""
_CONNECT_S = 5
"""Longest wait for a server to let us in."""
_LOCKED_S = 5
"""Longest wait for a turn to write to SQLite, and then for another process's lock of the file."""
STATEMENT_S = 8.0
"""Longest wait for a statement: with `stuck_s` of a group, a client knows within a quarter of a minute."""
_IDLE_S = 30
"""A server ends a transaction whose next statement does not come in time."""
COUNTS_VERSIONS = "dispatcher.counts"
"""Set in our connections: they count a request's version themselves, as triggers do for older replicas."""

_SQLITE_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA busy_timeout = {_LOCKED_S * 1000}",
)
"""FULL syncs the log at every commit: what was accepted survives a power cut, not only a crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database. On SQLite `writes` holds one connection, which makes it the write lock."""

    writes: AsyncEngine
    reads: AsyncEngine
    questions: AsyncEngine
    """The same connections as `writes` and `reads`, without transactions."""
    alone: AsyncEngine
    """Connections that are nobody else's: each is opened for whoever asks, and closed after it."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_postgres(self) -> bool:
        """Whether rows can be locked one by one and several replicas may share the database."""
        return self.writes.dialect.name == "postgresql"

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed on leaving, rolled back on an error."""
        async with self.turn():
            with translated():
                async with self.writes.begin() as connection:
                    yield connection

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The right to write: on SQLite one at a time, so that nobody polls for the file's lock."""
        if self.is_postgres:
            yield
            return
        await self.take_turn()
        try:
            yield
        finally:
            self.end_turn()

    async def take_turn(self) -> None:
        """Begin a turn on SQLite, which `end_turn` ends; raises UnavailableError where it does not come."""
        with translated():
            async with asyncio.timeout(_LOCKED_S):
                await self._turn.acquire()

    def end_turn(self) -> None:
        """Let the next one write."""
        self._turn.release()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[AsyncConnection]:
        """For one query: without a transaction around it where the database allows that, two trips less."""
        if not self.is_postgres:
            async with self.reading() as connection:
                yield connection
            return
        with translated():
            async with self.questions.connect() as connection:
                yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A read-only transaction whose statements all see the same committed state."""
        with translated():
            async with self.reads.begin() as connection:
                yield connection


@asynccontextmanager
async def open_engine(url: str, *, statement_s: float | None = STATEMENT_S) -> AsyncIterator[Database]:
    """Open the database that `url` names and close its connections on leaving.

    Takes `sqlite:///path` and `postgresql://user@host/name`, with or without the driver
    (`+aiosqlite`, `+asyncpg`). Raises ConfigurationError where the URL or the place it names
    can't be used, UnavailableError where a server does not answer. A statement on a server has
    `statement_s`, or all the time it needs.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        await asyncio.to_thread(_try_file, parsed.database or "")
        database = _open_sqlite(parsed)
    else:
        database = _open_postgres(parsed, statement_s)
    try:
        if database.is_postgres:
            await _try_server(database, parsed)
        yield database
    finally:
        await database.reads.dispose()
        await database.writes.dispose()
        await database.alone.dispose()


def parse_url(url: str) -> URL:
    """The URL with the driver that we use; raises ConfigurationError where it can't be one of ours."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: the port is no number
        raise ConfigurationError(
            "the database URL can't be read; use sqlite:///path or postgresql://user@host/name"
        ) from None
    for backend, driver in _DRIVERS.items():
        if parsed.drivername in {backend, f"{backend}+{driver}"}:
            if backend == "sqlite" and parsed.query:
                # The pools would drop some with a warning and take others into the file's name.
                raise ConfigurationError(
                    f"the URL of a SQLite database has no parameters: {sorted(parsed.query)}"
                )
            return parsed.set(drivername=f"{backend}+{driver}")
    raise ConfigurationError(
        f"databases of kind {parsed.drivername!r} are not supported; use sqlite or postgresql"
    )


def _make_engine(url: URL, *, pool_size: int, **options: object) -> AsyncEngine:
    """Parameters are people's words and tokens: hidden, they are in no error text and no log."""
    options["hide_parameters"] = True
    return create_async_engine(url, pool_size=pool_size, max_overflow=0, pool_timeout=_WAIT_S, **options)


def _open_sqlite(url: URL) -> Database:
    writes = _make_engine(url, pool_size=1)
    reads = _make_engine(url, pool_size=_SQLITE_READERS)
    _prepare_sqlite(writes, begin="BEGIN IMMEDIATE", query_only="OFF")
    _prepare_sqlite(reads, begin="BEGIN", query_only="ON")
    return Database(writes=writes, reads=reads, questions=reads, alone=writes)


def connect_sqlite(database: Database) -> sqlite3.Connection:
    """A connection beside the pools, for one thread at a time, with their settings and no transaction."""
    path = database.writes.url.database or ""
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    for pragma in _SQLITE_PRAGMAS:
        connection.execute(pragma)
    return connection


def _prepare_sqlite(engine: AsyncEngine, *, begin: str, query_only: str) -> None:
    """Let SQLAlchemy, not the driver, begin transactions, and set the pragmas on every connection."""

    def on_connect(connection: AsyncAdapt_aiosqlite_connection, _record: object) -> None:
        connection.isolation_level = None
        connection.create_function("power", 2, math.pow, deterministic=True)
        cursor = connection.cursor()
        for pragma in (*_SQLITE_PRAGMAS, f"PRAGMA query_only = {query_only}"):
            cursor.execute(pragma)
        cursor.close()

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", on_connect)
    event.listen(engine.sync_engine, "begin", on_begin)


def _for_asyncpg(url: URL) -> URL:
    """The URL with libpq's name for encryption under asyncpg's."""
    mode = url.query.get("sslmode")
    return url if mode is None else url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})


def _open_postgres(url: URL, statement_s: float | None) -> Database:
    target = _for_asyncpg(url)
    options: dict[str, object] = {
        # Whatever the server's default: a rule must see what was committed while it waited for its lock.
        "isolation_level": "READ COMMITTED",
        "hide_parameters": True,
        "connect_args": {
            "timeout": _CONNECT_S,
            "command_timeout": statement_s,
            # One insert text per group size: room for all of them.
            "prepared_statement_cache_size": 500,
            "server_settings": {
                "application_name": "dispatcher",
                "idle_in_transaction_session_timeout": f"{_IDLE_S}s",
                "jit": "off",
                COUNTS_VERSIONS: "on",
            },
        },
    }
    try:
        engine = _make_engine(target, pool_size=_POSTGRES_CONNECTIONS, pool_pre_ping=True, **options)
        alone = create_async_engine(target, poolclass=NullPool, **options)
    except ModuleNotFoundError:
        raise ConfigurationError("PostgreSQL needs the package's extra 'postgres' to be installed") from None
    event.listen(engine.sync_engine, "handle_error", _leave_a_standby)
    reads = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    questions = engine.execution_options(isolation_level="AUTOCOMMIT")
    return Database(writes=engine, reads=reads, questions=questions, alone=alone)


def _leave_a_standby(context: ExceptionContext) -> None:
    """Give up all connections to a server that became read-only in a failover, for it keeps them open."""
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY_STATE:
        context.is_disconnect = True


def _try_file(path: str) -> None:
    """Find out what is wrong with a file before connections of the pool, and their threads, depend on it."""
    if path in {"", ":memory:"}:
        raise ConfigurationError("the SQLite database needs a file: sqlite:///path/to/file.db")
    directory = Path(path).absolute().parent
    if not directory.is_dir():
        raise ConfigurationError(f"the directory {str(directory)!r} of the SQLite database does not exist")
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)) as connection:
            connection.execute(_SQLITE_PRAGMAS[0])
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise UnavailableError(f"the SQLite database {path!r} is locked by another process") from error
        raise ConfigurationError(f"the SQLite database {path!r} can't be opened for writing") from error


async def _try_server(database: Database, url: URL) -> None:
    try:
        async with database.reading():
            pass
    except NotAdmittedError:
        raise ConfigurationError(
            f"the server refused database {url.database!r}: check its name, the user and the password"
        ) from None
    except UnavailableError:
        raise
    except (TypeError, DispatcherError):  # TypeError: the driver knows no parameter of that name
        if not url.query:
            raise
        raise ConfigurationError(
            f"the database can't be reached with the parameters {sorted(url.query)} of its URL"
        ) from None
