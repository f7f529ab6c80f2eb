"""The one edge where errors of SQLAlchemy and its drivers become ours.

OSError, lost connection, no free connection in time   UnavailableError
deadlock, serialization failure, database locked       ConflictError: nothing stored, try again
anything else the database says                        DispatcherError: the statement was refused
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from dispatcher.errors import DispatcherError, UnavailableError

_CONFLICT_STATES = frozenset({"40001", "40P01", "55P03"})
"""serialization_failure, deadlock_detected, lock_not_available (PostgreSQL, appendix A)."""
_OUTAGE_CLASSES = frozenset({"08", "53", "57", "58"})
"""Connection, resources, operator intervention, system error (PostgreSQL, appendix A)."""
_CONFLICT_CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_OUTAGE_CODES = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}
)


class ConflictError(UnavailableError):
    """Another transaction was in the way and this one was rolled back; the same call may succeed at once."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the database inside the block as errors of `dispatcher.errors`."""
    try:
        yield
    except (OSError, NoConnectionError) as error:
        raise UnavailableError("the database can't be reached") from error
    except DBAPIError as error:
        raise _translation(error) from error
    except SQLAlchemyError as error:
        raise DispatcherError("the store issued a statement that can't run") from error


def _translation(error: DBAPIError) -> DispatcherError:
    state = getattr(error.orig, "sqlstate", None) or ""
    # Extended codes of SQLite keep the primary one in their low byte.
    code = (getattr(error.orig, "sqlite_errorcode", None) or 0) & 0xFF
    if state in _CONFLICT_STATES or code in _CONFLICT_CODES:
        return ConflictError("the database is busy with a conflicting change")
    if error.connection_invalidated or state[:2] in _OUTAGE_CLASSES or code in _OUTAGE_CODES:
        return UnavailableError("the database can't be reached or can't write")
    return DispatcherError("the database refused a statement")
