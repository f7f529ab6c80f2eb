import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.store.integrity import check_file

PAGE = 4096


def database(folder: Path) -> Path:
    """A file of several pages, with an index."""
    path = folder / "ledger.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL)")
        connection.execute("CREATE INDEX by_word ON words (word)")
        connection.executemany("INSERT INTO words (word) VALUES (?)", [(f"word {n}",) for n in range(2000)])
        connection.commit()
    return path


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def test_a_whole_file_passes(tmp_path: Path) -> None:
    check_file(f"sqlite:///{database(tmp_path)}")


@pytest.mark.parametrize("place", [0, 100, 2 * PAGE, 5 * PAGE, 9 * PAGE])
def test_one_changed_byte_of_the_structure_is_found(tmp_path: Path, place: int) -> None:
    path = database(tmp_path)
    flip(path, place)

    with pytest.raises(ConfigurationError, match="damaged"):
        check_file(f"sqlite:///{path}")


def test_a_value_that_its_index_contradicts_is_found(tmp_path: Path) -> None:
    path = database(tmp_path)
    flip(path, path.read_bytes().index(b"word 1000") + 5)

    with pytest.raises(ConfigurationError, match="damaged"):
        check_file(f"sqlite:///{path}")


def test_a_missing_file_and_a_server_are_not_looked_at(tmp_path: Path) -> None:
    check_file(f"sqlite:///{tmp_path / 'missing.db'}")
    check_file("postgresql://user@host/name")
