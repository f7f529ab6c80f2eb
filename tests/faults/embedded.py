"""Faults of the one process that is everything, on SQLite: rows 1 to 4, 10 and 22 to 25 of the matrix."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from tests.faults import bent, kill_points
from tests.faults.deliveries import QUESTION, USER
from tests.faults.echo import FATAL, ONCE
from tests.faults.history import Unanswered
from tests.faults.load import Order
from tests.faults.row import OwnRow
from tests.faults.solo import Solo, open_solo, read_books, tried
from tests.faults.trial import Report

Fault = Callable[[Solo], Awaitable[None]]
DRAIN_S = 40.0
SAMPLES = {"DISPATCHER_ENCODER__NAME": "use", "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "20"}


async def killed_before_commit(solo: Solo) -> None:
    """Row 1 (R1, R8): its client saw a broken connection, nothing exists, and the key works afterwards."""
    await solo.kill()
    await solo.start(**{bent.VARIABLE: "before_accept_commit"})
    order = solo.load.order(capability=ONCE)
    await solo.load.post(order, tries=1)
    assert isinstance(solo.load.events[-1], Unanswered)
    assert "killed at before_accept_commit" in await solo.until_dead()
    await solo.start()
    solo.heal()
    await solo.load.post(order)
    assert await _codes(solo, [order]) == {None}


async def killed_at(variable: str, point: str, solo: Solo) -> None:
    """Rows 2 to 4 (R1, R3, R8): what was accepted ends, and runs once, when the process is there again."""
    await solo.kill()
    await solo.start(**{variable: point})
    async with asyncio.TaskGroup() as group:
        orders = [solo.load.order(capability=ONCE) for _ in range(6)]
        for order in orders:
            group.create_task(solo.load.post(order))
        assert f"killed at {point}" in await solo.until_dead()
        await solo.start()
        solo.heal()
    # What had begun and left no result must not run again, and says so.
    assert await _codes(solo, orders) <= {None, "outcome_unknown"}


async def killed_under_load(solo: Solo) -> None:
    """Wherever it was: what ran or may have run is not run again, the rest is."""
    async with solo.load.flowing():
        for _ in range(3):
            await solo.clock.sleep(1.5)
            await solo.kill()
            await solo.start()
        solo.heal()


async def terminated_under_load(solo: Solo) -> None:
    """Row 10 (R1, R9): takes no more, ends or hands back, exits 0 in time, leaves nothing running."""
    async with solo.load.flowing(8):
        slow = await solo.load.accepted(6, capability=ONCE, work_s=2.0)
        await solo.clock.sleep(1)
        began = solo.clock.monotonic()
        code = await solo.end()
        took = solo.clock.monotonic() - began
        assert (code, took < DRAIN_S) == (0, True), f"exit {code} after {took:.1f} s"
        await solo.start()
        solo.heal()
        assert await _codes(solo, slow) == {None}, "what ran when it was told to end was not finished"
    await solo.load.drain()
    end = solo.clock.monotonic() + 5
    while (status := (await solo.load.show("/v1/agents/ada")).json()["status"])["running"]:
        assert solo.clock.monotonic() < end, status
        await solo.clock.sleep(0.2)


async def deliveries_tripled(solo: Solo) -> None:
    """Row 22 (R3): every task comes three times and runs once."""
    await _bent(solo, "tripled")
    async with solo.load.flowing(most=90):
        await solo.clock.sleep(3)
        solo.heal()


async def junk_before_every_task(solo: Solo) -> None:
    """Row 24 (R1, R9): what nobody can read is put aside; the agent works on."""
    await _bent(solo, "junk")
    async with solo.load.flowing(most=60):
        await solo.clock.sleep(2)
        solo.heal()


async def second_part_first(solo: Solo) -> None:
    """Row 23 (R1): a result for a part that waits is refused; it goes out after the other's result."""
    await _bent(solo, "held")
    request_id = await solo.load.ask(QUESTION, user_id=USER)
    forged = {"type": "result", "request_id": request_id, "task_id": f"{request_id}.1", "attempt": 1}
    body = {**forged, "token": "f" * 64, "instance_id": "forger", "status": "success"}
    async with httpx2.AsyncClient() as client:
        reply = await client.post(f"{solo.url}/v1/results/{request_id}.1", json=body)
    assert (reply.status_code, reply.json()["code"]) == (403, "result_refused"), reply.text
    assert [record.kind for record in read_books(solo.database).records] == ["rejected"]
    (solo.folder / bent.RELEASE).touch()
    solo.heal()
    document = await _ended(solo, request_id)
    assert (document["status"], len(document["parts"])) == ("completed", 2), document


async def deliveries_that_kill(solo: Solo) -> None:
    """Row 25 (R1): the process dies of a task, again and again, until its request fails."""
    (order,) = await solo.load.accepted(1, capability=FATAL)
    end = solo.clock.monotonic() + 90
    while not await solo.load.read(order):
        assert solo.clock.monotonic() < end, "its request did not end"
        if solo.has_ended:
            await solo.until_dead()
            await solo.start()
        await solo.clock.sleep(0.1)
    solo.heal()
    assert order.answer["status"] == "failed", order.answer
    assert len(solo.starts()) > 1


async def _bent(solo: Solo, name: str) -> None:
    assert await solo.end() == 0
    await solo.start(**{bent.VARIABLE: name})


async def _codes(solo: Solo, orders: Sequence[Order]) -> set[str | None]:
    answers = [await solo.load.ended(order) for order in orders]
    return {(answer["parts"][0]["error"] or {}).get("code") for answer in answers}


async def _ended(solo: Solo, request_id: str) -> dict[str, Any]:
    end = solo.clock.monotonic() + 30
    while True:
        document: dict[str, Any] = (await solo.load.show(f"/v1/requests/{request_id}")).json()
        if document["status"] != "open":
            return document
        assert solo.clock.monotonic() < end, document
        await solo.clock.sleep(0.1)


async def _with_echo(fault: Fault, folder: Path) -> Report:
    async with open_solo(folder) as solo:
        return await tried(solo, fault)


async def _with_samples(fault: Fault, folder: Path) -> Report:
    agents = ("agents.order:agent", "agents.promotion:agent")
    async with open_solo(folder, settings=SAMPLES, agents=agents) as solo:
        return await tried(solo, fault)


def _row(
    numbers: str, title: str, fault: Fault, world: Callable[..., Awaitable[Report]] = _with_echo
) -> OwnRow:
    return OwnRow(numbers=f"{numbers}e", title=f"embedded: {title}", run=partial(world, fault))


AFTER_COMMIT = partial(killed_at, kill_points.VARIABLE, "after_accept_commit_before_publish")
AFTER_SEND = partial(killed_at, bent.VARIABLE, "after_send_before_mark")
AFTER_202 = partial(killed_at, kill_points.VARIABLE, "after_202")

ROWS = (
    _row("1", "killed before the commit of an accept", killed_before_commit),
    _row("2", "killed between commit and hand-over", AFTER_COMMIT),
    _row("3", "killed between hand-over and mark", AFTER_SEND),
    _row("4", "killed after a 202", AFTER_202),
    _row("4k", "killed under load", killed_under_load),
    _row("10", "terminated under load", terminated_under_load),
    _row("22", "deliveries tripled", deliveries_tripled),
    _row("23", "second part first", second_part_first, _with_samples),
    _row("24", "junk before every task", junk_before_every_task),
    _row("25", "deliveries that kill", deliveries_that_kill),
)
