"""Faults of the database and results that come too late: rows 26, 27, 44 and 45 of the matrix."""

import asyncio
import signal

from tests.faults.echo import BRIEF
from tests.faults.history import Refused
from tests.faults.row import Row
from tests.faults.trial import Trial, until_recorded
from tests.faults.wire import tapped
from tests.services.postgres import PostgresServer

_STOP_S = 10.0


def _stop_at_once(server: PostgresServer) -> None:
    """What `pg_ctl stop -m immediate` does: no shutdown, no checkpoint, recovery at the next start."""
    server._server.stop(signal.SIGQUIT, _STOP_S)


async def database_stopped_during_commits(trial: Trial) -> None:
    """Row 26: whether a commit happened is found out by its key."""
    server = trial.server
    assert server is not None
    async with trial.load.flowing():
        for _ in range(3):
            await trial.clock.sleep(1)
            await asyncio.to_thread(_stop_at_once, server)
            await asyncio.to_thread(server.start)
        trial.heal()
        await trial.clock.sleep(2)


async def database_down(trial: Trial) -> None:
    """Row 27: nothing is accepted meanwhile, nothing under way is lost, and all goes on by itself."""
    server = trial.server
    assert server is not None
    async with trial.load.flowing():
        await trial.clock.sleep(1.5)
        await asyncio.to_thread(_stop_at_once, server)
        await trial.clock.sleep(3)
        await asyncio.to_thread(server.start)
        trial.heal()
        await trial.clock.sleep(3)
    refused = {event.code for event in trial.load.events if isinstance(event, Refused)}
    assert refused == {"unavailable"}, refused


async def result_after_the_end(trial: Trial) -> None:
    """Row 44: the task's time ran out; its result is kept as late and changes nothing."""
    fleet = trial.fleet
    async with tapped(fleet) as wire:
        for name in fleet.agents:
            fleet.signal_agent(name, signal.SIGSTOP)
        orders = await trial.load.accepted(6, capability=BRIEF)
        answers = [await trial.load.ended(order, 15) for order in orders]
        assert {answer["parts"][0]["error"]["code"] for answer in answers} == {"timeout"}
        # What seemed lost was published again: one frame of each attempt is enough.
        for frame in {frame.token: frame for frame in wire.tasks}.values():
            await wire.send_result(wire.answer_to(frame, "too late"))
        trial.heal()
        await until_recorded(trial, "late", len(orders))
        for name in fleet.agents:
            fleet.signal_agent(name, signal.SIGCONT)


async def results_that_contradict(trial: Trial) -> None:
    """Row 45: the first counts; the same again is a duplicate, another one a conflict."""
    async with tapped(trial.fleet) as wire:
        orders = await trial.load.accepted(6)
        for order in orders:
            await trial.load.ended(order)
        await trial.until(lambda: len(wire.results) >= len(orders))
        for frame in tuple(wire.results):
            other = frame.result.model_copy(update={"text": "something else"})
            await wire.send_result(frame)
            await wire.send_result(frame.model_copy(update={"result": other}))
            await wire.send_result(frame.model_copy(update={"token": "f" * len(frame.token)}))
        trial.heal()
        for kind in ("duplicate", "conflict", "rejected"):
            await until_recorded(trial, kind, len(orders))


ROWS = (
    Row(numbers="44", title="result after the end", fault=result_after_the_end),
    Row(numbers="45", title="results that contradict", fault=results_that_contradict),
    Row(numbers="26", title="database stopped in commits", fault=database_stopped_during_commits, alone=True),
    Row(numbers="27", title="database down", fault=database_down, alone=True),
)
