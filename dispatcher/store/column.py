"""What both databases must do alike: the time, JSON documents and text, as column types and SQL."""

import json

import orjson
from sqlalchemy import BigInteger, Dialect, Text, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import TypeDecorator


def stored_words(value: str | None) -> str | None:
    """Text as it is stored; see `Words`."""
    return value if value is None or "\0" not in value else value.replace("\0", "\ufffd")


def stored_json(value: object) -> str | None:
    """A JSON document as it is stored; None for none."""
    if value is None:
        return None
    try:
        return orjson.dumps(value, default=dict).decode()
    except TypeError:
        # Integers beyond 64 bits, which JSON allows and orjson does not.
        return json.dumps(value, default=dict, ensure_ascii=False, allow_nan=False)


class now_ms(FunctionElement[int]):  # noqa: N801  (reads as the SQL function it is)
    """Milliseconds since the epoch by the database's clock, when the statement began."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_ms, "postgresql")
def _now_ms_postgresql(_element: now_ms, _compiler: SQLCompiler, **_kw: object) -> str:
    # Stable within a statement, so an index can serve a comparison with it.
    return "(extract(epoch from statement_timestamp()) * 1000)::bigint"


@compiles(now_ms, "sqlite")
def _now_ms_sqlite(_element: now_ms, _compiler: SQLCompiler, **_kw: object) -> str:
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"


_NOW = select(now_ms())


async def read_now(connection: AsyncConnection) -> int:
    """The database's time in milliseconds, now; later than any lock the transaction already holds."""
    now: int = (await connection.execute(_NOW)).scalar_one()
    return now


class Words(TypeDecorator[str]):
    """Text from people and agents. NUL becomes U+FFFD: PostgreSQL stores no NUL, SQLite would."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: D102
        return stored_words(value)


class Json(TypeDecorator[object]):
    """A JSON document kept as text: twice as cheap to write as a parsed column, read as a whole."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:  # noqa: D102
        return stored_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:  # noqa: D102
        return None if value is None else orjson.loads(value)
