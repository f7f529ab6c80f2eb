"""The one edge where errors of SQLAlchemy and its drivers become ours.

OSError, lost connection, no free connection in time   UnavailableError
server shuts down, is full, or is read-only            UnavailableError
a direct writer's connection broke in use              LostError: also an UnavailableError
user, password or database not accepted                NotAdmittedError: also an UnavailableError
deadlock, serialization failure                        ConflictError: nothing stored, try again
SQLite file locked longer than we wait for it          UnavailableError
anything else the database says                        DispatcherError: the statement was refused

The driver's own error is not chained: its text quotes rows and values, which are people's words
and tokens and belong in no log. Its class, its SQLSTATE and the statement's first words remain.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from dispatcher.errors import DispatcherError, UnavailableError

_CONFLICT_STATES = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available (PostgreSQL, appendix A)."""
_LOGIN_CLASSES = frozenset({"28", "3D"})
"""Invalid authorization, invalid catalog name (PostgreSQL, appendix A)."""
_OUTAGE_CLASSES = frozenset({"08", "53", "57", "58", "F0"})
"""Connection, resources, operator intervention, system error, configuration file (same place)."""
READ_ONLY_STATE = "25006"
"""read_only_sql_transaction: the server is a standby, as after a failover."""
_OUTAGE_STATES = frozenset({READ_ONLY_STATE, "25P03", "25P04"})
"""Also idle_in_transaction_session_timeout and transaction_timeout."""
_SHOWN_CHARACTERS = 60
_CONFLICT_CODES = frozenset(
    {sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_LOCKED_SHAREDCACHE}
)
_OUTAGE_CODES = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


class ConflictError(UnavailableError):
    """Another transaction was in the way and this one was rolled back; the same call may succeed at once."""


class LostError(UnavailableError):
    """A connection in use broke: what was sent may be committed, and a new one may work at once."""


class NotAdmittedError(UnavailableError):
    """The server does not let us in.

    At the start a mistake in the settings; later an operator changes passwords or moves databases,
    and what is under way has to wait for the end of that.
    """


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the database inside the block as errors of `dispatcher.errors`."""
    try:
        yield
    except (OSError, NoConnectionError) as error:
        raise UnavailableError("the database can't be reached") from error
    except DBAPIError as error:
        raise _translation(error) from None
    except SQLAlchemyError as error:
        refused = getattr(error, "orig", None)
        if isinstance(refused, DispatcherError):  # one of our column types, for a value
            raise refused from None
        raise DispatcherError("the store issued a statement that can't run") from error


def driver_failure(error: Exception) -> DispatcherError:
    """Our error for one that a driver raised where SQLAlchemy had no part in it.

    One without any code of the database, as for a closed connection, is an outage.
    """
    state: str = getattr(error, "sqlstate", None) or ""
    code = getattr(error, "sqlite_errorcode", None) or 0
    is_known = bool(state or code)
    return _failure(f"{type(error).__name__} {state or code}", state, code, is_lost=not is_known)


def _translation(error: DBAPIError) -> DispatcherError:
    state = getattr(error.orig, "sqlstate", None) or ""
    code = getattr(error.orig, "sqlite_errorcode", None) or 0
    cause = f"{type(error.orig).__name__} {state or code} at {_beginning(error.statement)!r}"
    return _failure(cause, state, code, is_lost=error.connection_invalidated)


def _failure(cause: str, state: str, code: int, *, is_lost: bool) -> DispatcherError:
    if state in _CONFLICT_STATES or code in _CONFLICT_CODES:
        return ConflictError(f"the database is busy with a conflicting change: {cause}")
    if state[:2] in _LOGIN_CLASSES:
        return NotAdmittedError(f"the database does not let us in: {cause}")
    if is_lost or _is_outage(state, code):
        return UnavailableError(f"the database can't be reached or can't write: {cause}")
    return DispatcherError(f"the database refused a statement: {cause}")


def _beginning(statement: str | None) -> str:
    """Enough of a statement to find it; values are never part of its text."""
    return " ".join((statement or "").split())[:_SHOWN_CHARACTERS]


def _is_outage(state: str, code: int) -> bool:
    # Extended codes of SQLite keep the primary one in their low byte.
    return state in _OUTAGE_STATES or state[:2] in _OUTAGE_CLASSES or code & 0xFF in _OUTAGE_CODES
