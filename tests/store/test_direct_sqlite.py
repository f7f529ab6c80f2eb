import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import UnavailableError
from dispatcher.store.direct_sqlite import SqliteWriter
from dispatcher.store.engine import Database, connect_sqlite, open_engine
from dispatcher.store.own_thread import OwnThread
from tests.store.exhausted import Exhausted

LIMIT_S = 5


class HeldUp:
    """Connects when the test says."""

    def __init__(self) -> None:
        self.is_asked, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, database: Database) -> sqlite3.Connection:
        self.is_asked.set()
        self.may_go_on.wait(LIMIT_S)
        return connect_sqlite(database)


async def test_the_turn_of_a_cancelled_caller_lasts_until_its_thread_is_done(tmp_path: Path):
    connect = HeldUp()

    async with open_engine(f"sqlite:///{tmp_path / 'ledger.db'}") as database:
        writer = SqliteWriter(database, connect)
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            caller = group.create_task(writer.read_now())
            await asyncio.to_thread(connect.is_asked.wait, LIMIT_S)
            caller.cancel()
            await asyncio.wait([caller])

            following = group.create_task(database.take_turn())
            await SystemClock().sleep(0)
            has_begun_early = following.done()
            connect.may_go_on.set()
            await following
            database.end_turn()
        later_ms = await writer.read_now()
        await writer.close()

    assert caller.cancelled()
    assert not has_begun_early
    assert later_ms > 0


async def test_where_no_thread_can_be_started_the_turn_ends(tmp_path: Path):
    async with open_engine(f"sqlite:///{tmp_path / 'ledger.db'}") as database:
        writer = SqliteWriter(database, thread=OwnThread("ledger", Exhausted(times=1)))

        with pytest.raises(UnavailableError):
            await writer.read_now()

        async with asyncio.timeout(LIMIT_S):
            assert await writer.read_now() > 0
            async with database.turn():
                pass
        await writer.close()
