"""What the SQLite inbox keeps over the end of its process."""

import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.sdk.inbox import Claim, Verdict
from dispatcher.sdk.sqlite_inbox import SqliteInbox


def claim(*, owner: str, idempotent: bool, attempt: int = 1) -> Claim:
    return Claim(key="k", owner=owner, attempt=attempt, idempotent=idempotent, hold_s=3600.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inbox.sqlite"


async def test_a_stored_outcome_outlives_the_process(path):
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await inbox.claim(claim(owner="first", idempotent=False))
        await inbox.finish("k", "first", b"done", retryable=False)

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        judgement = await inbox.claim(claim(owner="second", idempotent=False))

    assert (judgement.verdict, judgement.outcome) == (Verdict.REPLAY, b"done")


async def test_a_file_keeps_its_id_and_shares_it_with_no_other(tmp_path):
    ids = []
    for name in ("one", "one", "two"):
        async with aclosing(await SqliteInbox.open(tmp_path / name)) as inbox:
            ids.append(inbox.inbox_id)

    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(("idempotent", "verdict"), [(False, Verdict.UNKNOWN), (True, Verdict.RUN)])
async def test_a_run_cut_off_by_a_crash_is_repeated_only_if_idempotent(path, idempotent, verdict):
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await inbox.claim(claim(owner="crashed", idempotent=idempotent))

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        judgement = await inbox.claim(claim(owner="restarted", idempotent=idempotent))

    assert judgement.verdict is verdict


async def test_a_file_in_use_is_refused_with_one_sentence(path):
    async with aclosing(await SqliteInbox.open(path)):
        with pytest.raises(ConfigurationError, match="can't be used: database is locked"):
            await SqliteInbox.open(path, wait_s=0.05)


async def test_a_place_that_cannot_be_written_is_refused_with_one_sentence(tmp_path):
    with pytest.raises(ConfigurationError, match="can't be used"):
        await SqliteInbox.open(tmp_path / "missing" / "inbox.sqlite")


async def test_every_write_is_on_disk_before_it_counts(path):
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        (synchronous,) = await inbox._call(lambda: inbox._connection.execute("PRAGMA synchronous").fetchone())

    assert synchronous == 2


async def test_a_failing_file_is_said_to_be_unavailable(path):
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await inbox._call(lambda: inbox._connection.execute("DROP TABLE inbox"))

        with pytest.raises(UnavailableError):
            await inbox.claim(claim(owner="me", idempotent=True))
        with pytest.raises(UnavailableError):
            await inbox.finish("k", "me", b"done", retryable=False)


async def test_old_rows_are_forgotten_when_the_file_is_opened(path):
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await inbox.claim(claim(owner="me", idempotent=False))
        await inbox.finish("k", "me", b"done", retryable=False)
        await inbox._call(lambda: inbox._connection.execute("UPDATE inbox SET touched_at = 0"))

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        assert (await inbox.claim(claim(owner="me", idempotent=False))).verdict is Verdict.RUN


async def test_old_rows_are_forgotten_while_it_is_in_use(path):
    look = Claim(key="other", owner="me", attempt=1, idempotent=True, hold_s=1.0, may_start=False)
    async with aclosing(await SqliteInbox.open(path)) as inbox:
        await inbox.claim(claim(owner="me", idempotent=False))
        await inbox._call(lambda: inbox._connection.execute("UPDATE inbox SET touched_at = 0"))

        for _ in range(256):
            await inbox.claim(look)

        assert (await inbox.claim(claim(owner="me", idempotent=False))).verdict is Verdict.RUN


FIRST_RELEASE = """
CREATE TABLE inbox (
    key TEXT PRIMARY KEY, owner TEXT NOT NULL, attempt INTEGER NOT NULL, expires_at REAL NOT NULL,
    touched_at REAL NOT NULL, outcome BLOB, retryable INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO inbox VALUES ('k', 'before', 1, 0, unixepoch(), 'done', 0);
"""


async def test_a_file_of_the_first_release_is_read_and_goes_on(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST_RELEASE)

    async with aclosing(await SqliteInbox.open(path)) as inbox:
        known = await inbox.claim(claim(owner="me", idempotent=True, attempt=4))
        new = Claim(key="n", owner="me", attempt=1, idempotent=True, hold_s=0.0, envelope=b"to")
        began = await inbox.claim(new)
        left = await inbox.untold("other")

    assert (known.verdict, began.verdict) == (Verdict.REPLAY, Verdict.RUN)
    assert [task.key for task in left] == ["n"]
