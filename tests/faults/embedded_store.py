"""Faults of the file that is the ledger: rows 30 to 34 of the matrix on the embedded default."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path

from tests.faults import bent
from tests.faults.echo import ONCE
from tests.faults.history import Accepted, Refused, check
from tests.faults.row import OwnRow
from tests.faults.solo import Solo, open_solo, tried
from tests.faults.trial import Report

LOCKED_S = 14.0
BUSY_S = 12.0
"""A group of writes waits 5 s for the lock, and so may one before it; their callers hear of it soon after."""
SMALL_DISK, LARGE_DISK = "1m", "64m"
INBOX = "inbox-ada.db"
PAGE = 4096
EXIT_S = 30.0


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Another connection, as of another process, is about to write."""
    with closing(sqlite3.connect(database, timeout=20, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


async def transactions_cross(solo: Solo) -> None:
    """Row 30 (R2, R3): short locks of somebody else cost time, no request and no second call."""
    async with solo.load.flowing(most=120):
        for _ in range(15):
            with _locked(solo.database):
                await solo.clock.sleep(0.1)
            await solo.clock.sleep(0.1)
        solo.heal()
    refused = [event.code for event in solo.load.events if isinstance(event, Refused)]
    assert not refused, refused


async def locked_for_long(solo: Solo) -> None:
    """Row 31 (R10): after the busy time 503, in bounded time; then all goes on by itself."""
    await solo.load.accepted(4)
    orders = [solo.load.order(capability=ONCE) for _ in range(6)]
    with _locked(solo.database):
        began = solo.clock.monotonic()
        async with asyncio.TaskGroup() as group:
            for order in orders:
                group.create_task(solo.load.post(order, tries=1, seconds=BUSY_S))
            await solo.clock.sleep(LOCKED_S)
    solo.heal()
    refused = [event for event in solo.load.events if isinstance(event, Refused)]
    assert {event.code for event in refused} == {"unavailable"}, refused
    assert len(refused) == len(orders), f"{len(refused)} of {len(orders)} were refused"
    slowest = max(event.time - began for event in refused)
    assert slowest < BUSY_S, f"the slowest 503 took {slowest:.1f} s"
    for order in orders:
        await solo.load.post(order)
        assert (await solo.load.ended(order, 20))["status"] == "completed"


async def disk_full(solo: Solo) -> None:
    """Row 32 (R8): no false 202; what was accepted ends once there is room again, by itself."""
    async with solo.load.flowing(8, most=4_000):
        await solo.until(lambda: any(isinstance(event, Refused) for event in solo.load.events), 60)
        await solo.clock.sleep(2)
        _mount("-o", f"remount,size={LARGE_DISK}", str(solo.data))
        solo.heal()
        healed = solo.clock.monotonic()
        await solo.until(lambda: _accepted_since(solo, healed), 20)
    refused = {event.code for event in solo.load.events if isinstance(event, Refused)}
    assert refused <= {"unavailable"}, refused


def _accepted_since(solo: Solo, time: float) -> bool:
    return any(isinstance(event, Accepted) and event.time > time for event in solo.load.events)


async def file_corrupted(solo: Solo) -> None:
    """Row 33 (R8): a damaged file is refused at the start with a sentence; the undamaged one works on."""
    await solo.load.accepted(20)
    await solo.load.drain()
    assert await solo.end() == 0
    whole = solo.folder / "whole.db"
    shutil.copy(solo.database, whole)
    try:
        for place in _places(whole):
            shutil.copy(whole, solo.database)
            _flip(solo.database, place)
            await _is_refused(solo, "damaged")
    finally:
        shutil.copy(whole, solo.database)
    await solo.start()
    solo.heal()


def _places(database: Path) -> list[int]:
    """A byte of the header, and the kinds of pages all over the file."""
    pages = database.stat().st_size // PAGE
    return [0, 100, *(PAGE * number for number in range(pages // 5, pages, max(1, pages // 4)))]


def _flip(database: Path, place: int) -> None:
    with database.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0xFF]))


async def _is_refused(solo: Solo, why: str) -> None:
    """Starting ends with status 1 and one sentence, which says why."""
    program = solo.run("run", "--development", "--port", str(solo.port))
    solo.ended.append(program)
    code = await asyncio.to_thread(program.wait, EXIT_S)
    said = program.text.strip().split("\n")
    assert (code, len(said)) == (1, 1), f"exit {code}: {program.text[-400:]}"
    assert why in said[0], said[0]


async def migration_interrupted(solo: Solo) -> None:
    """Row 34 (R15): killed between steps it leaves nothing; the next start completes it; newer is refused."""
    assert await solo.end() == 0
    shutil.rmtree(solo.data)
    program = solo.run("run", "--development", "--port", str(solo.port), **{bent.VARIABLE: "in_migration"})
    solo.ended.append(program)
    assert await asyncio.to_thread(program.wait, EXIT_S) == -9, program.text
    assert _tables(solo.database) == 0
    await solo.start()
    (order,) = await solo.load.accepted(1)
    await solo.load.ended(order)
    assert await solo.end() == 0
    with closing(sqlite3.connect(solo.database)) as connection:
        (current,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
        try:
            await _is_refused(solo, "newer")
        finally:
            connection.execute("UPDATE alembic_version SET version_num = ?", (current,))
            connection.commit()
    await solo.start()
    solo.heal()


def _tables(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _mount(*arguments: str) -> str | None:
    """Mount, or what is in the way of it."""
    command = ("mount", "-t", "tmpfs", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


@asynccontextmanager
async def _small_disk(folder: Path) -> AsyncIterator[str | None]:
    """The folder as a full disk soon will be; yields what kept it from being mounted."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs here
    problem = _mount("-o", f"size={SMALL_DISK}", "tmpfs", str(folder))
    try:
        yield problem
    finally:
        if problem is None:
            await asyncio.to_thread(subprocess.run, ("umount", "--lazy", str(folder)), check=True)


async def _on_small_disk(folder: Path) -> Report:
    data = folder / "disk"
    async with _small_disk(data) as problem:
        if problem is not None:
            return Report(verdict=check(()), recovery_s=(), endings={f"skipped: {problem}": 1}, problems=())
        # The agent remembers elsewhere what it did: this row is about the ledger.
        (data / INBOX).symlink_to(folder / INBOX)
        async with open_solo(folder, data=data) as solo:
            return await tried(solo, disk_full)


async def _on_any_disk(fault: Callable[[Solo], Awaitable[None]], folder: Path) -> Report:
    async with open_solo(folder) as solo:
        return await tried(solo, fault)


def _row(numbers: str, title: str, run: Callable[[Path], Awaitable[Report]]) -> OwnRow:
    return OwnRow(numbers=numbers, title=f"embedded: {title}", run=run)


ROWS = (
    _row("30e", "transactions cross", partial(_on_any_disk, transactions_cross)),
    _row("31e", "database locked", partial(_on_any_disk, locked_for_long)),
    _row("32e", "disk full", _on_small_disk),
    _row("33e", "database corrupted", partial(_on_any_disk, file_corrupted)),
    _row("34e", "migration interrupted", partial(_on_any_disk, migration_interrupted)),
)
