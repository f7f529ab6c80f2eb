"""What both databases must do alike: the time, numbers, JSON documents and text, as column types and SQL."""

import json
import math
from collections.abc import Mapping

import orjson
from sqlalchemy import BigInteger, Dialect, Double, Text, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import TypeDecorator

from dispatcher.errors import DispatcherError

_SCALARS = (str, int)
_LISTS = (list, tuple)


def stored_words(value: str | None) -> str | None:
    """Text as it is stored; see `Words`."""
    return value if value is None or "\0" not in value else value.replace("\0", "\ufffd")


def stored_number(value: float | None) -> float | None:
    """A number as it is stored; see `Number`."""
    if value is not None and not math.isfinite(value):
        raise _not_finite()
    return value


def stored_json(value: object) -> str | None:
    """A JSON document as it is stored; None for none.

    Raises DispatcherError for numbers that are not finite: a document must not change on its way.
    """
    if value is None:
        return None
    document = encoded_json(value)
    # Numbers that are not finite become null in the text, so only one with a null may hold any.
    if "null" in document and not _is_finite(value):
        raise _not_finite()
    return document


def encoded_json(value: object) -> str:
    """The text of a JSON value whose numbers are known to be finite."""
    try:
        return orjson.dumps(value, default=dict).decode()
    except TypeError:
        # Integers beyond 64 bits, which JSON allows and orjson does not.
        try:
            return json.dumps(value, default=dict, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise _not_finite() from None


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, _SCALARS):
        return True
    if isinstance(value, _LISTS):
        return all(map(_is_finite, value))
    return not isinstance(value, Mapping) or all(map(_is_finite, value.values()))


def _not_finite() -> DispatcherError:
    return DispatcherError("a number that is not finite can't be stored")


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


class Number(TypeDecorator[float]):
    """A finite number. PostgreSQL would store NaN, SQLite would make NULL of it."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:  # noqa: D102
        return stored_number(value)


class Json(TypeDecorator[object]):
    """A JSON document kept as text: twice as cheap to write as a parsed column, read as a whole."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:  # noqa: D102
        return stored_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:  # noqa: D102
        return None if value is None else orjson.loads(value)
