import sqlite3

import pytest
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.store.failure import ConflictError, translated


class PostgresStyleError(Exception):
    """What a PostgreSQL driver's error looks like to us: it has an SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def postgres(sqlstate: str, *, lost: bool = False) -> DBAPIError:
    return DBAPIError("SELECT", {}, PostgresStyleError(sqlstate), connection_invalidated=lost)


def sqlite(code: int) -> OperationalError:
    error = sqlite3.OperationalError("said so")
    error.sqlite_errorcode = code
    return OperationalError("SELECT", {}, error)


def translation_of(error: Exception) -> DispatcherError:
    with pytest.raises(DispatcherError) as caught, translated():
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (postgres("40001"), ConflictError),
        (postgres("40P01"), ConflictError),
        (postgres("08006"), UnavailableError),
        (postgres("53300"), UnavailableError),
        (postgres("57P01"), UnavailableError),
        (postgres("", lost=True), UnavailableError),
        (postgres("23505"), DispatcherError),
        (postgres("22P05"), DispatcherError),
        (sqlite(sqlite3.SQLITE_BUSY), ConflictError),
        (sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), ConflictError),
        (sqlite(sqlite3.SQLITE_FULL), UnavailableError),
        (sqlite(sqlite3.SQLITE_IOERR_FSYNC), UnavailableError),
        (sqlite(sqlite3.SQLITE_ERROR), DispatcherError),
        (IntegrityError("INSERT", {}, sqlite3.IntegrityError()), DispatcherError),
        (NoConnectionError("pool is empty"), UnavailableError),
        (ArgumentError("no such column"), DispatcherError),
        (ConnectionRefusedError(), UnavailableError),
        (TimeoutError(), UnavailableError),
    ],
)
def test_errors_of_the_database_become_ours(error: Exception, expected: type[DispatcherError]):
    translation = translation_of(error)

    assert type(translation) is expected
    assert translation.__cause__ is error


def test_other_errors_pass_unchanged():
    with pytest.raises(ValueError, match="a rule's own"), translated():
        raise ValueError("a rule's own")
