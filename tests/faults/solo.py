"""One process with everything in it: gateway, SQLite ledger, in-process channel and an agent.

It is ended and judged like a fleet; what it wrote is read from its folder.
"""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM, Signals

import httpx2

from dispatcher.clock import SystemClock
from tests.faults.fleet import EXIT_S, READY_S, SETTINGS, read_journal
from tests.faults.history import Died, Started
from tests.faults.load import Load
from tests.faults.trial import Books, Report, judged, recorded, tracebacks
from tests.scenario.program import ROOT, Program
from tests.services.ports import LOOPBACK, free_ports

JOURNAL = "ada.jsonl"
AGENT = "tests.faults.inside:ada"


@dataclass(slots=True, kw_only=True)
class Solo:
    """The process, its clients, and what it leaves behind. `data` is its data folder."""

    folder: Path
    data: Path
    port: int
    load: Load
    settings: Mapping[str, str] = field(default_factory=dict)
    agents: Sequence[str] = (AGENT,)
    program: Program | None = None
    ended: list[Program] = field(default_factory=list)
    dead: list[Died] = field(default_factory=list)
    clock: SystemClock = field(default_factory=SystemClock)
    healed_at: float | None = None

    @property
    def url(self) -> str:
        """Where the gateway listens; the same after a restart."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def database(self) -> Path:
        """The ledger's file."""
        return self.data / "dispatcher.db"

    def run(self, *command: str, **variables: str) -> Program:
        """A process of the `dispatcher` command in the folder, with this world's settings."""
        given = {**SETTINGS, "DISPATCHER_DATA_DIR": str(self.data), "PYTHONPATH": str(ROOT)}
        every = {**given, **self.settings, **variables}
        return Program(
            *(sys.executable, "-m", "tests.faults.bent", *command), folder=self.folder, variables=every
        )

    async def start(self, **variables: str) -> None:
        """Start the gateway with its agent and return when it listens."""
        agents = [part for name in self.agents for part in ("--agent", name)]
        options = ("--development", "--port", str(self.port), *agents)
        self.program = self.run("run", *options, **variables)
        await asyncio.to_thread(self.program.wait_for, r"listening on http", READY_S)

    @property
    def running(self) -> Program:
        """The process; fails where there is none."""
        assert self.program is not None
        return self.program

    @property
    def has_ended(self) -> bool:
        """Whether the process ended by itself."""
        return self.program is not None and self.program.has_ended

    async def kill(self) -> None:
        """SIGKILL; returns when it is dead."""
        await self._end(SIGKILL)

    async def end(self) -> int:
        """SIGTERM; its exit code."""
        return await self._end(SIGTERM)

    async def until_dead(self, seconds: float = 20.0) -> str:
        """What the process printed, once it has ended by itself."""
        program = self.running
        await self.until(lambda: program.has_ended, seconds)
        await self._end(SIGTERM)
        return program.text

    async def _end(self, number: Signals) -> int:
        program, self.program = self.running, None
        self.ended.append(program)
        if not program.has_ended:
            program.send(number)
            program.send(SIGCONT)
        code = await asyncio.to_thread(program.wait, EXIT_S)
        buried, now = {died.instance for died in self.dead}, self.clock.monotonic()
        born = {started.instance for started in self.starts()}
        self.dead += [Died(time=now, instance=instance) for instance in born - buried]
        return code

    async def until(self, is_reached: Callable[[], bool], seconds: float = 20.0) -> None:
        """Return once the condition holds; fails when time is up."""
        end = self.clock.monotonic() + seconds
        while not is_reached():
            assert self.clock.monotonic() < end, "what the fault waits for did not happen"
            await self.clock.sleep(0.02)

    def heal(self) -> None:
        """From here on nothing is broken any more."""
        self.healed_at = self.clock.monotonic()

    def starts(self) -> Sequence[Started]:
        """The handlers that began so far."""
        return [event for event in read_journal(self.folder / JOURNAL) if isinstance(event, Started)]

    def text(self) -> str:
        """Everything that its processes printed."""
        programs = [*self.ended, *([self.program] if self.program else [])]
        return "\n".join(program.text for program in programs)

    def close(self) -> None:
        """End whatever still runs, at once."""
        for program in (*self.ended, *([self.program] if self.program else [])):
            program.close()


@asynccontextmanager
async def open_solo(
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    agents: Sequence[str] = (AGENT,),
    data: Path | None = None,
) -> AsyncIterator[Solo]:
    """A world whose process is not started yet; everything is ended with the block."""
    (port,) = free_ports(1)
    async with httpx2.AsyncClient(timeout=20) as client:
        solo = Solo(
            folder=folder,
            data=data or folder / "data",
            port=port,
            load=Load([f"http://{LOOPBACK}:{port}"], client),
            settings=settings or {},
            agents=agents,
        )
        try:
            yield solo
        finally:
            solo.close()


async def tried(solo: Solo, fault: Callable[[Solo], Awaitable[None]]) -> Report:
    """Start, break, drain and judge; what the fault missed stands among the problems."""
    problems: list[str] = []
    await solo.start()
    try:
        await fault(solo)
    except* AssertionError as group:
        problems += [f"{type(error).__name__}: {error}" for error in group.exceptions]
    return await conclude(solo, problems)


async def conclude(solo: Solo, problems: Sequence[str] = ()) -> Report:
    """Drain, read everything once more, end the process, and judge."""
    healed_at = solo.healed_at or solo.clock.monotonic()
    problems = list(problems)
    if solo.program is None or solo.has_ended:
        problems += ["the process ended by itself"] if solo.has_ended else []
        if solo.has_ended:
            await solo.until_dead()
        await solo.start()
    await solo.load.drain()
    await solo.load.read_all()
    code = await solo.end()
    problems += [f"it exited {code}"] if code else []
    problems += tracebacks(solo.text())
    books = read_books(solo.database)
    problems += [f"{books.open_attempts} attempts are still open"] if books.open_attempts else []
    ran = [*read_journal(solo.folder / JOURNAL), *solo.dead]
    return judged(solo.load, ran, books, healed_at, problems)


def read_books(database: Path) -> Books:
    """What the ledger's file holds of results, ends and open attempts."""
    with closing(sqlite3.connect(database)) as connection:
        julian = "(julianday('now') - 2440587.5) * 86400.0"
        (now,) = connection.execute(f"SELECT {julian}").fetchone()
        ahead_s = SystemClock().monotonic() - now
        results = connection.execute("SELECT request_id, kind, document FROM results").fetchall()
        ended = connection.execute("SELECT request_id, finished_ms FROM requests WHERE finished_ms > 0")
        finished = {row[0]: row[1] / 1000 + ahead_s for row in ended}
        left = connection.execute(
            "SELECT count(*) FROM attempts WHERE status IN ('due', 'published')"
        ).fetchone()[0]
        overdue = connection.execute(
            "SELECT count(*) FROM attempts JOIN tasks USING (task_id) WHERE published_ms > deadline_ms + 1000"
        ).fetchone()[0]
    return Books(
        records=[recorded(*row) for row in results],
        finished=finished,
        open_attempts=left,
        overdue_attempts=overdue,
    )
