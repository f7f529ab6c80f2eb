import sqlite3
import traceback

import pytest
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.store.failure import ConflictError, NotAdmittedError, translated


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
        (postgres("57014"), UnavailableError),
        (postgres("58030"), UnavailableError),
        (postgres("25006"), UnavailableError),
        (postgres("25P03"), UnavailableError),
        (postgres("25P04"), UnavailableError),
        (postgres("28P01"), NotAdmittedError),
        (postgres("28000"), NotAdmittedError),
        (postgres("3D000"), NotAdmittedError),
        (postgres("", lost=True), UnavailableError),
        (postgres("23505"), DispatcherError),
        (postgres("22P05"), DispatcherError),
        (sqlite(sqlite3.SQLITE_BUSY), UnavailableError),
        (sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), ConflictError),
        (sqlite(sqlite3.SQLITE_FULL), UnavailableError),
        (sqlite(sqlite3.SQLITE_IOERR_FSYNC), UnavailableError),
        (sqlite(sqlite3.SQLITE_READONLY_DBMOVED), UnavailableError),
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


def test_the_text_of_the_database_is_dropped_and_what_finds_the_fault_is_kept():
    orig = PostgresStyleError("23502")
    orig.args = ("Failing row contains (what somebody wrote)",)
    error = IntegrityError("INSERT INTO requests (message)\nVALUES ($1)", ("what somebody wrote",), orig)

    translation = translation_of(error)

    assert "somebody" not in "".join(traceback.format_exception(translation))
    assert translation.message == (
        "the database refused a statement: "
        "PostgresStyleError 23502 at 'INSERT INTO requests (message) VALUES ($1)'"
    )


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ArgumentError("no such column")])
def test_an_error_without_anybodys_words_stays_the_cause(error: Exception):
    assert translation_of(error).__cause__ is error


def test_other_errors_pass_unchanged():
    with pytest.raises(ValueError, match="a rule's own"), translated():
        raise ValueError("a rule's own")
