"""A database that is slow, locked, crossed or half migrated: rows 28 to 30 and 34 of the matrix."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import asyncpg

from tests.faults.echo import ONCE
from tests.faults.fleet import fetch, fresh_database
from tests.faults.history import Refused, Unanswered
from tests.faults.row import USUAL_LIVENESS, Row
from tests.faults.trial import Trial
from tests.scenario.program import Program, dispatcher, run

SLOW_S = 0.2
"""A tenth of the matrix's 2 seconds, for each piece of data in each direction."""
HEALTH_S = 2.0
LONGEST_WAIT_S = 20.0
"""A statement is given up after 8 seconds; who came in its first 3 waits for it and then for his own."""
CONNECTIONS = 10
"""Of each gateway."""
LAST_TABLE = "results"
WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
"""
CROSSING_S = 60.0
TALKATIVE = {"DISPATCHER_LOG_LEVEL": "info"}


async def database_slow(trial: Trial) -> None:
    """Row 28: everybody waits for the database and nobody for anything else."""
    wire = trial.fleet.wires.database
    async with trial.load.flowing():
        await trial.clock.sleep(1)
        wire.delay(SLOW_S)
        for _ in range(12):
            await _answers_at_once(trial)
            await trial.clock.sleep(0.5)
        wire.delay(0)
        trial.heal()
        await trial.clock.sleep(2)
    assert not any(isinstance(event, Unanswered) for event in trial.load.events)


async def connections_exhausted(trial: Trial) -> None:
    """Row 29: behind a long transaction the wait is bounded; what waited is refused, and all goes on."""
    orders = [trial.load.order(capability=ONCE) for _ in range(CONNECTIONS + 2)]
    locked = _transaction(trial, "LOCK TABLE requests IN ACCESS EXCLUSIVE MODE")
    async with locked, asyncio.TaskGroup() as group:
        for order in orders:
            group.create_task(trial.load.post(order, tries=1, seconds=LONGEST_WAIT_S))
        for _ in range(5):
            await trial.clock.sleep(2)
            await _answers_at_once(trial)
    trial.heal()
    refused = [event.code for event in trial.load.events if isinstance(event, Refused)]
    assert refused == ["unavailable"] * len(orders), refused
    for order in orders:
        await trial.load.post(order)
        await trial.load.ended(order, 20)


async def transactions_crossing(trial: Trial) -> None:
    """Row 30: a transaction that was ended as deadlocked is repeated, and no agent is called again."""
    end = trial.clock.monotonic() + CROSSING_S
    while "ledger.conflict" not in trial.fleet.text():
        assert trial.clock.monotonic() < end, "no gateway's transaction was ended"
        async with asyncio.TaskGroup() as group:
            group.create_task(trial.load.accepted(16, capability=ONCE, work_s=0.6))
            await trial.clock.sleep(0.4)
            await _cross(trial)
    trial.heal()
    for order in trial.load.orders:
        assert (await trial.load.ended(order))["status"] == "completed"


async def migration_interrupted(trial: Trial) -> None:
    """Row 34: killed in the middle it left nothing; run again it completes; what is newer is refused."""
    assert trial.server is not None
    async with fresh_database(trial.server.url, upgraded=False) as url:
        variables = {"DISPATCHER_STORE__URL": url}
        await _kill_upgrade(trial, url, variables)
        assert await _tables(url) == set()
        for _ in range(2):
            done = await asyncio.to_thread(run, *dispatcher("upgrade"), variables=variables)
            assert done.returncode == 0, done.stderr
        assert LAST_TABLE in await _tables(url)
        await fetch(url, "UPDATE alembic_version SET version_num = 'ffff'")
        for command in (("run", "--port", "0"), ("upgrade",)):
            refused = await asyncio.to_thread(run, *dispatcher(*command), variables=variables)
            assert refused.returncode == 1, refused.stderr
            assert "Traceback" not in refused.stderr, refused.stderr
            assert "newer" in refused.stderr, refused.stderr


async def _kill_upgrade(trial: Trial, url: str, variables: Mapping[str, str]) -> None:
    """Let the upgrade wait for a table of the same name that another transaction is making, and kill it."""
    rival = await asyncpg.connect(url)
    try:
        await rival.execute(f"BEGIN; CREATE TABLE {LAST_TABLE} (number int)")
        program = Program(*dispatcher("upgrade"), variables=variables)
        end = trial.clock.monotonic() + 60
        while await fetch(url, WAITING) == [(0,)]:
            assert trial.clock.monotonic() < end, program.text
            await trial.clock.sleep(0.05)
        program.send(signal.SIGKILL)
        await asyncio.to_thread(program.wait)
        program.close()
    finally:
        await rival.close()


async def _answers_at_once(trial: Trial) -> None:
    began = time.monotonic()
    assert (await trial.load.show("/healthz")).status_code == 200
    assert time.monotonic() - began < HEALTH_S


async def _cross(trial: Trial) -> None:
    """Take open requests from the newest to the oldest, against the order of the gateways."""
    newest = "SELECT request_id FROM requests WHERE finished_ms IS NULL ORDER BY request_id DESC LIMIT 12"
    connection = await asyncpg.connect(trial.fleet.database_url)
    try:
        names = [row[0] for row in await connection.fetch(newest)]
        with suppress(asyncpg.DeadlockDetectedError):
            async with connection.transaction():
                for name in names:
                    await connection.execute("SELECT 1 FROM requests WHERE request_id = $1 FOR UPDATE", name)
                    await trial.clock.sleep(0.03)
    finally:
        await connection.close()


@asynccontextmanager
async def _transaction(trial: Trial, statement: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(trial.fleet.database_url)
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


async def _tables(url: str) -> set[str]:
    return {
        name for (name,) in await fetch(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    }


ROWS = (
    Row(numbers="28", title="database slow", fault=database_slow, settings=USUAL_LIVENESS),
    Row(
        numbers="29",
        title="database connections exhausted",
        fault=connections_exhausted,
        settings=USUAL_LIVENESS,
    ),
    Row(numbers="30", title="transactions crossing", fault=transactions_crossing, settings=TALKATIVE),
    Row(numbers="34", title="migration interrupted", fault=migration_interrupted),
)
