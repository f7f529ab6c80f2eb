"""Whether a SQLite file holds together: asked once, before anything depends on it.

SQLite keeps no checksums, so that a changed byte inside a value goes unseen; what is found is
damage to its structure, and values that their index contradicts.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from dispatcher.errors import ConfigurationError
from dispatcher.store.engine import parse_url

_WHOLE_BYTES = 256 * 1024 * 1024
"""Up to this size indexes are compared too: about 100 MB in a second."""
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def check_file(url: str) -> None:
    """Return if the file is whole, missing or can't be opened; raises ConfigurationError for a damaged one.

    Other URLs than SQLite's are not looked at.
    """
    parsed = parse_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    try:
        is_whole = _is_whole(path)
    except sqlite3.Error as error:
        is_whole = error.sqlite_errorcode & 0xFF not in _DAMAGE
    if not is_whole:
        raise ConfigurationError(
            f"the SQLite database {str(path)!r} is damaged: restore a copy, or move the file away"
        )


def _is_whole(path: Path) -> bool:
    check = "integrity_check" if path.stat().st_size <= _WHOLE_BYTES else "quick_check"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = connection.execute(f"PRAGMA {check}(1)").fetchone()
    return found is not None and found[0] == "ok"
