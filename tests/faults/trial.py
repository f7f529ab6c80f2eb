"""One fault from start to verdict: a fleet under load, the fault, the drain, the books."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
import httpx2
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId
from tests.faults.fleet import AGENTS, Fleet, open_fleet
from tests.faults.history import Accepted, Event, Recorded, Refused, Verdict, check
from tests.faults.load import UNDOCUMENTED, Load
from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitNode

SETTLED_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the ledger says after the drain. `finished` is by the shared monotonic clock, per request."""

    records: Sequence[Recorded]
    finished: Mapping[str, float]
    open_attempts: int
    overdue_attempts: int
    """Published after their task's deadline (I7)."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """What a fault works with. `node` and `server` are there only where they may be killed."""

    fleet: Fleet
    load: Load
    node: RabbitNode | None = None
    server: PostgresServer | None = None
    clock: SystemClock = field(default_factory=SystemClock)
    healed_at: float | None = None

    async def until(self, is_reached: Callable[[], bool], seconds: float = 20.0) -> None:
        """Return once the condition holds; fails when time is up."""
        end = self.clock.monotonic() + seconds
        while not is_reached():
            assert self.clock.monotonic() < end, "what the fault waits for did not happen"
            await self.clock.sleep(0.02)

    def heal(self) -> None:
        """From here on nothing is broken any more: recovery is measured from now."""
        self.healed_at = self.clock.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a trial found."""

    verdict: Verdict
    recovery_s: Sequence[float]
    endings: Mapping[str, int]
    """Requests by how they ended: status, and the error code if there is one."""
    problems: Sequence[str]
    """Beyond the history: exit codes, queues, counters, tracebacks."""


@asynccontextmanager
async def open_trial(
    folder: Path,
    broker: RabbitNode | str,
    server: PostgresServer | str,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Trial]:
    """A running fleet and its clients on services that are given as parts, or as addresses only."""
    broker_url = broker if isinstance(broker, str) else broker.url
    server_url = server if isinstance(server, str) else server.url
    async with (
        open_fleet(folder, broker_url, server_url, settings) as fleet,
        httpx2.AsyncClient(timeout=10) as client,
    ):
        yield Trial(
            fleet=fleet,
            load=Load(fleet.urls, client),
            node=None if isinstance(broker, str) else broker,
            server=None if isinstance(server, str) else server,
        )


async def conclude(trial: Trial) -> Report:
    """Drain, read everything once more, end all processes, and judge."""
    fleet, load = trial.fleet, trial.load
    healed_at = trial.healed_at or trial.clock.monotonic()
    problems = [f"{name} ended by itself" for name in await fleet.revive()]
    await load.drain()
    await load.read_all()
    problems += await _leftovers(trial)
    codes = await fleet.end()
    problems += [f"{name} exited {code}" for name, code in codes.items() if code]
    problems += await _queues(trial)
    problems += tracebacks(fleet.text())
    books = await read_books(fleet.database_url)
    return judged(load, fleet.events(), books, healed_at, problems)


def judged(
    load: Load, ran: Sequence[Event], books: Books, healed_at: float, problems: Sequence[str]
) -> Report:
    """What clients saw, agents ran and the ledger kept, held against the rules."""
    codes_seen = {event.code for event in load.events if isinstance(event, Refused)}
    problems = [*problems, *(code for code in sorted(codes_seen) if code.startswith(UNDOCUMENTED))]
    events: list[Event] = [*load.events, *ran, *books.records]
    return Report(
        verdict=check(events),
        recovery_s=_recovery(events, books, healed_at),
        endings=Counter(_ending(order.answer) for order in load.orders if order.is_ended),
        problems=problems,
    )


def _ending(answer: Mapping[str, Any]) -> str:
    error = answer["parts"][0]["error"]
    return str(answer["status"]) if error is None else f"{answer['status']}: {error['code']}"


def tracebacks(text: str) -> list[str]:
    """What processes printed of errors that nobody expected: where it began and what it was, each once."""
    lines = text.split("\n")
    found = [line[-800:] for line in lines if '"exception":' in line]
    for number, line in enumerate(lines):
        if line.startswith("Traceback"):
            end = next((n for n in range(number + 1, len(lines)) if lines[n][:1] not in {"", " "}), number)
            ours = [frame.strip() for frame in lines[number:end] if "/dispatcher/" in frame]
            found.append(f"{lines[end][:300]} {ours[-1:]}")
    return [f"a process printed {one}" for one in dict.fromkeys(found)][:5]


async def read_books(database_url: str) -> Books:
    """What the ledger holds of results, ends and open attempts."""
    connection = await asyncpg.connect(database_url)
    try:
        ahead_s = SystemClock().monotonic() - await connection.fetchval(
            "SELECT extract(epoch FROM clock_timestamp())::float8"
        )
        results = await connection.fetch("SELECT request_id, kind, document FROM results")
        ended = await connection.fetch(
            "SELECT request_id, finished_ms FROM requests WHERE finished_ms IS NOT NULL"
        )
        unfinished = await connection.fetchval(
            "SELECT count(*) FROM attempts WHERE status IN ('due', 'published')"
        )
        overdue = await connection.fetchval(
            "SELECT count(*) FROM attempts JOIN tasks USING (task_id) WHERE published_ms > deadline_ms + 1000"
        )
    finally:
        await connection.close()
    return Books(
        records=[recorded(*row) for row in results],
        finished={row[0]: row[1] / 1000 + ahead_s for row in ended},
        open_attempts=unfinished,
        overdue_attempts=overdue,
    )


async def until_recorded(trial: Trial, kind: str, count: int) -> None:
    """Return once the ledger keeps so many results of this kind, or more; fails when time is up."""
    end = trial.clock.monotonic() + 10
    while True:
        books = await read_books(trial.fleet.database_url)
        recorded = sum(record.kind == kind for record in books.records)
        if recorded >= count:
            return
        assert trial.clock.monotonic() < end, f"{recorded} results were recorded as {kind}, not {count}"
        await trial.clock.sleep(0.1)


def recorded(request_id: str, kind: str, document: str) -> Recorded:
    """A row of the ledger's results."""
    run = json.loads(document)["result"]["data"].get("run")
    return Recorded(request_id=request_id, kind=kind, run=None if run is None else str(run))


def _recovery(events: Sequence[Event], books: Books, healed_at: float) -> list[float]:
    """Seconds from the end of the fault to the end of each request that was under way then."""
    under_way = [e.request_id for e in events if isinstance(e, Accepted) and e.time <= healed_at]
    late_s = (books.finished[name] - healed_at for name in set(under_way) if name in books.finished)
    return [round(seconds, 3) for seconds in late_s if seconds > 0]


async def _leftovers(trial: Trial) -> list[str]:
    """Attempts that are still open although every request has ended, or that came after the deadline."""
    books = await read_books(trial.fleet.database_url)
    left, late = books.open_attempts, books.overdue_attempts
    return [
        *([f"{left} attempts are still open"] if left else []),
        *([f"{late} attempts were published after their deadline"] if late else []),
    ]


async def _queues(trial: Trial) -> list[str]:
    """Queues that are gone, or not empty although everybody has left; what expired there is buried."""
    topology = trial.fleet.topology
    names = [topology.results_queue, *(topology.task_queue(AgentId(name)) for name in AGENTS)]
    connection = await aio_pika.connect(trial.fleet.broker_url)
    async with connection, asyncio.timeout(SETTLED_S + 10):
        until = trial.clock.monotonic() + SETTLED_S
        while True:
            left = {name: await _length(connection, name) for name in names}
            if not any(left.values()) or None in left.values() or trial.clock.monotonic() > until:
                break
            await trial.clock.sleep(0.5)
    gone = [f"there is no queue {name}" for name, length in left.items() if length is None]
    return [*gone, *(f"{length} messages are left in {name}" for name, length in left.items() if length)]


async def waiting_in(trial: Trial, agent: str) -> int | None:
    """The messages in an agent's queue that nobody has."""
    connection = await aio_pika.connect(trial.fleet.broker_url)
    async with connection:
        return await _length(connection, trial.fleet.topology.task_queue(AgentId(agent)))


async def _length(connection: AbstractConnection, name: str) -> int | None:
    """The number of messages in a queue; None where there is no such queue."""
    channel = await connection.channel()
    try:
        queue = await channel.declare_queue(name, passive=True)
    except ChannelNotFoundEntity:
        return None
    await channel.close()
    return queue.declaration_result.message_count
