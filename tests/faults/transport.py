"""Faults of the broker and of the way to it: rows 11 to 24 of the matrix."""

import asyncio
import signal

from tests.faults.echo import ONCE
from tests.faults.fleet import fetch
from tests.faults.history import Accepted
from tests.faults.row import USUAL_LIVENESS, Row
from tests.faults.trial import Trial
from tests.faults.wire import tapped

SETTLED_QUEUE_S = 16.0
"""A quorum queue younger than this can stay leaderless after a hard kill: a defect of the broker, row 11b."""
TRIPLED = 80
HALF_OPEN_S = 45.0
"""Two AMQP heartbeats of 15 seconds, and some time to connect and to catch up."""


async def broker_killed_while_publishing(trial: Trial) -> None:
    """Row 11: whatever was under way on the wire is published again."""
    await _broker_down(trial, 0)


async def broker_down(trial: Trial) -> None:
    """Row 13: the ledger takes what is posted meanwhile, and it is delivered afterwards."""
    began, ended = await _broker_down(trial, 6)
    taken = [e for e in trial.load.events if isinstance(e, Accepted) and began < e.time < ended]
    assert taken, "nothing was accepted while the broker was down"
    await trial.load.drain(60)
    ends = {str(order.answer.get("status", "nothing yet")) for order in trial.load.orders}
    assert ends == {"completed"}, f"what was accepted meanwhile ended as {ends}"


async def _broker_down(trial: Trial, seconds: float) -> tuple[float, float]:
    assert trial.node is not None
    await trial.clock.sleep(SETTLED_QUEUE_S)
    async with trial.load.flowing(most=600):
        await trial.clock.sleep(1.5)
        await asyncio.to_thread(trial.node.kill)
        began = trial.clock.monotonic()
        await trial.clock.sleep(seconds)
        ended = trial.clock.monotonic()
        await asyncio.to_thread(trial.node.start)
        trial.heal()
        await trial.clock.sleep(3)
    return began, ended


async def broker_connections_cut(trial: Trial) -> None:
    """Row 14: cut in mid-frame, again and again; all connect again and repeat what is unconfirmed."""
    wires = trial.fleet.wires
    async with trial.load.flowing():
        for number in range(8):
            await trial.clock.sleep(0.7)
            (wires.gateway_broker if number % 2 else wires.agent_broker["ada"]).cut()
        trial.heal()
        await trial.clock.sleep(2)


async def broker_connections_half_open(trial: Trial) -> None:
    """Row 15: packets vanish and nobody closes anything; found out by heartbeats, without help."""
    wires = trial.fleet.wires
    async with trial.load.flowing(most=150):
        await trial.clock.sleep(1.5)
        wires.gateway_broker.hold(new_ones_too=False)
        wires.agent_broker["ada"].hold(new_ones_too=False)
        trial.heal()
        await trial.clock.sleep(HALF_OPEN_S)
    after = await trial.load.accepted(10, capability=ONCE)
    ends = {(await trial.load.ended(order, 5))["status"] for order in after}
    assert ends == {"completed"}, f"after {HALF_OPEN_S} s requests still end as {ends}"


async def task_queue_deleted(trial: Trial) -> None:
    """Row 18: the message comes back, the task goes elsewhere, and the queue is made again."""
    async with tapped(trial.fleet) as wire, trial.load.flowing(most=300):
        await trial.clock.sleep(1.5)
        await wire.delete_task_queue("ada")
        trial.heal()
        await trial.clock.sleep(5)
        known = len(trial.fleet.starts("ada"))
        after = await trial.load.accepted(10)
        for order in after:
            assert (await trial.load.ended(order, 10))["status"] == "completed"
    await trial.until(lambda: len(trial.fleet.starts("ada")) > known, 10)


async def deliveries_tripled(trial: Trial) -> None:
    """Row 22: every task is delivered three times and runs once."""
    repeated: set[str] = set()
    async with tapped(trial.fleet) as wire, trial.load.flowing(most=240):
        async with asyncio.timeout(60):
            while len(repeated) < TRIPLED:
                await trial.clock.sleep(0.1)
                for frame in tuple(wire.tasks):
                    if frame.token not in repeated:
                        repeated.add(frame.token)
                        await wire.send_task(frame)
                        await wire.send_task(frame)
        trial.heal()


async def declined_delivery_comes_again(trial: Trial) -> None:
    """Row 22b: a draining agent declines, another one runs it; a copy that comes late must run nowhere."""
    fleet = trial.fleet
    async with tapped(fleet) as wire:
        fleet.signal_agent("ada", signal.SIGSTOP)
        orders = await trial.load.accepted(8, capability=ONCE)
        await trial.until(lambda: len({frame.token for frame in wire.tasks}) >= len(orders))
        copies = {frame.token: frame for frame in wire.tasks if frame.agent_id == "ada"}
        await fleet.end_agent("ada")
        for order in orders:
            await trial.load.ended(order, 20)
        for frame in copies.values():
            await wire.send_task(frame)
        await fleet.start_agent("ada")
        trial.heal()
        await trial.clock.sleep(2)
    assert copies, "nothing was given to the agent that was stopped"


async def junk_everywhere(trial: Trial) -> None:
    """Row 24: what nobody can read goes to the dead letters; everybody lives and works on."""
    topology = trial.fleet.topology
    junk = b'{"v": 1, "type": "task", '
    async with tapped(trial.fleet) as wire, trial.load.flowing(most=150):
        await trial.clock.sleep(1)
        for number in range(5):
            await wire.send(topology.task_exchange, "ada", junk, f"junk{number}")
            await wire.send(topology.result_exchange, "results", junk, "junk")
            await wire.send(topology.registry_exchange, "registry", junk, "junk")
            await wire.send(topology.heartbeat_exchange, "", b"\xff\x00", "junk")
        trial.heal()
        await trial.clock.sleep(2)
        buried = await fetch(trial.fleet.database_url, "SELECT count(*) FROM dead_frames")
        assert buried[0][0] == 10
    assert {*trial.fleet.gateways} == {0, 1}


ROWS = (
    Row(numbers="14", title="broker connections cut", fault=broker_connections_cut),
    Row(
        numbers="15",
        title="broker connections half-open",
        fault=broker_connections_half_open,
        settings=USUAL_LIVENESS,
    ),
    Row(numbers="18", title="task queue deleted", fault=task_queue_deleted),
    Row(numbers="22", title="deliveries tripled", fault=deliveries_tripled),
    Row(numbers="22b", title="declined delivery comes again", fault=declined_delivery_comes_again),
    Row(numbers="24", title="junk in every queue", fault=junk_everywhere),
    Row(
        numbers="11",
        title="broker killed",
        fault=broker_killed_while_publishing,
        settings=USUAL_LIVENESS,
        alone=True,
    ),
    Row(numbers="13", title="broker down", fault=broker_down, alone=True),
)
