"""Faults of processes: rows 2 to 10 of the matrix."""

import signal
from collections.abc import Sequence

from tests.faults.echo import ONCE
from tests.faults.load import Order
from tests.faults.trial import Trial


async def gateway_killed_under_load(trial: Trial) -> None:
    """Rows 2 and 3: wherever between commit, publish and mark it was, others go on."""
    fleet = trial.fleet
    async with trial.load.flowing():
        for number in (0, 1, 0):
            await trial.clock.sleep(1.5)
            fleet.kill_gateway(number)
            await trial.clock.sleep(0.7)
            await fleet.start_gateway(number)
        trial.heal()


async def gateways_killed_after_202(trial: Trial) -> None:
    """Row 4: what was answered 202 is there, and ends, after every gateway was killed."""
    orders = await trial.load.accepted(20, work_s=0.3)
    for number in (0, 1):
        trial.fleet.kill_gateway(number)
    for number in (0, 1):
        await trial.fleet.start_gateway(number)
    trial.heal()
    await _all_complete(trial, orders)


async def agent_killed_before_its_handler(trial: Trial) -> None:
    """Row 5: it had received the tasks and not begun: they are delivered again and run once."""
    trial.fleet.signal_agent("ada", signal.SIGSTOP)
    orders = await trial.load.accepted(12, capability=ONCE)
    await trial.clock.sleep(0.8)
    trial.fleet.kill_agent("ada")
    assert not trial.fleet.starts("ada")
    await trial.fleet.start_agent("ada")
    trial.heal()
    await _all_complete(trial, orders)
    assert trial.fleet.starts("ada"), "nothing was given to the agent that was killed"


async def agent_killed_during_its_handler(trial: Trial) -> None:
    """Row 6: what may be repeated is; of anything else nobody can know how it ended, and it says so."""
    safe = await trial.load.accepted(6, work_s=1.0)
    once = await trial.load.accepted(6, work_s=1.0, capability=ONCE)
    await trial.until(lambda: len(trial.fleet.starts("ada")) + len(trial.fleet.starts("bob")) >= 12)
    trial.fleet.kill_agent("ada")
    broken_off = {start.request_id for start in trial.fleet.starts("ada")} - _finished(trial)
    await trial.fleet.start_agent("ada")
    trial.heal()
    await _all_complete(trial, safe)
    for order in once:
        answer = await trial.load.ended(order)
        error = answer["parts"][0]["error"]
        expected = "outcome_unknown" if order.request_id in broken_off else None
        assert (error or {}).get("code") == expected, f"{order.request_id}: {error}, expected {expected}"
    assert broken_off & {order.request_id for order in once}, "no handler was broken off"


async def agent_killed_after_its_handler(trial: Trial) -> None:
    """Row 7: the outcome is in its inbox, unpublished: its successor tells it and runs nothing."""
    wire = trial.fleet.wires.agent_broker["ada"]
    orders = await trial.load.accepted(8, capability=ONCE, work_s=0.6)
    await trial.until(lambda: len(trial.fleet.starts("ada")) >= 2)
    wire.hold()
    await trial.until(lambda: len(trial.fleet.ends("ada")) == len(trial.fleet.starts("ada")))
    await trial.clock.sleep(0.3)
    trial.fleet.kill_agent("ada")
    wire.resume()
    await trial.fleet.start_agent("ada")
    trial.heal()
    await _all_complete(trial, orders)


async def agent_stopped_and_continued(trial: Trial) -> None:
    """Row 9: its attempts lapse, another agent takes over; what it says when it wakes changes nothing."""
    async with trial.load.flowing():
        await trial.clock.sleep(1)
        trial.fleet.signal_agent("ada", signal.SIGSTOP)
        await trial.clock.sleep(6)
        trial.fleet.signal_agent("ada", signal.SIGCONT)
        trial.heal()
        await trial.clock.sleep(2)


async def terminated_under_load(trial: Trial) -> None:
    """Row 10: gateway and agent finish or hand back, exit 0, and leave nothing open."""
    fleet = trial.fleet
    async with trial.load.flowing():
        await trial.clock.sleep(1.5)
        assert await fleet.end_agent("ada") == 0
        assert await fleet.end_gateway(0) == 0
        trial.heal()
        await trial.clock.sleep(1)
        await fleet.start_gateway(0)
        await fleet.start_agent("ada")
        await trial.clock.sleep(1)


def _finished(trial: Trial) -> set[str]:
    """Requests whose handler ended."""
    ended = {end.run for end in trial.fleet.ends("ada")}
    return {start.request_id for start in trial.fleet.starts("ada") if start.run in ended}


async def _all_complete(trial: Trial, orders: Sequence[Order]) -> None:
    for order in orders:
        answer = await trial.load.ended(order)
        assert answer["status"] == "completed", f"{order.request_id} {order.capability}: {answer}"
