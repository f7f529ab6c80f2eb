"""Faults of processes: rows 2 to 10 of the matrix."""

import asyncio
import signal
from collections.abc import Awaitable, Sequence

from tests.faults.echo import ONCE
from tests.faults.load import Order
from tests.faults.row import Row
from tests.faults.trial import Trial

DRAIN_S = 40.0


async def gateway_killed_under_load(trial: Trial) -> None:
    """Row 2b: wherever between commit, publish and mark it was, others go on."""
    fleet = trial.fleet
    async with trial.load.flowing():
        for number in (0, 1, 0):
            await trial.clock.sleep(1.5)
            fleet.kill_gateway(number)
            await trial.clock.sleep(0.7)
            await fleet.start_gateway(number)
        trial.heal()


async def gateways_killed_after_202(trial: Trial) -> None:
    """Row 4b: what was answered 202 is there, and ends, after every gateway was killed."""
    orders = await trial.load.accepted(20, work_s=0.3)
    for number in (0, 1):
        trial.fleet.kill_gateway(number)
    for number in (0, 1):
        await trial.fleet.start_gateway(number)
    trial.heal()
    await _all_complete(trial, orders)


async def agent_killed_before_its_handler(trial: Trial) -> None:
    """Row 5b: it had received the tasks and not begun: they are delivered again and run once."""
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
    """Row 6b: what may be repeated is; of anything else nobody can know how it ended, and it says so."""
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
    """Row 7d: the outcome is in its inbox, unpublished: its successor tells it and runs nothing."""
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


async def stopped_agent_succeeded(trial: Trial) -> None:
    """Row 9b (I2): its successor has another inbox and runs what it was sent; awake, it runs none of that.

    It has received copies of these tasks, and nobody told it that its connection's far end is gone.
    """
    fleet, wire = trial.fleet, trial.fleet.wires.agent_broker["ada"]
    await _all_complete(trial, await trial.load.accepted(12, capability=ONCE))
    ran = len(fleet.starts("ada"))
    assert ran, "it does not consume yet"
    fleet.signal_agent("ada", signal.SIGSTOP)
    orders = await trial.load.accepted(12, capability=ONCE)
    await trial.clock.sleep(6)
    wire.orphan()
    stopped = fleet.abandon_agent("ada")
    await fleet.start_agent("ada", inbox="successor")
    await _all_complete(trial, orders)
    assert len(fleet.starts("ada")) > ran, "the successor was given nothing"
    stopped.send(signal.SIGCONT)
    await trial.clock.sleep(2)
    wire.resume()
    trial.heal()
    await trial.until(lambda: stopped.has_ended, 60)
    assert "private_inbox" in stopped.text, f"it left for another reason: {stopped.text[-600:]}"


async def terminated_under_load(trial: Trial) -> None:
    """Row 10 (R1, R9): each finishes or hands back in time, exits 0, and all counters are as before."""
    fleet = trial.fleet
    async with asyncio.timeout(20):
        # The other gateway hears of an agent a little later than the agent of its registration.
        while len(before := await _counters(trial)) < len(fleet.agents):
            await trial.clock.sleep(0.1)
    async with trial.load.flowing(8):
        slow = await trial.load.accepted(8, capability=ONCE, work_s=2.0)
        await trial.clock.sleep(1)
        await _ends_in_time(trial, fleet.end_agent("ada"))
        await _ends_in_time(trial, fleet.end_gateway(0))
        trial.heal()
        await fleet.start_gateway(0)
        await fleet.start_agent("ada")
        await _all_complete(trial, slow)
    await trial.load.drain()
    end = trial.clock.monotonic() + 5
    while (after := await _counters(trial)) != before:
        assert trial.clock.monotonic() < end, f"{before} became {after}"
        await trial.clock.sleep(0.2)


async def _ends_in_time(trial: Trial, ending: Awaitable[int]) -> None:
    began = trial.clock.monotonic()
    code = await ending
    took = trial.clock.monotonic() - began
    assert (code, took < DRAIN_S) == (0, True), f"exit {code} after {took:.1f} s"


async def _counters(trial: Trial) -> dict[str, tuple[int, int]]:
    """What runs at each agent, and how much it can take, as a gateway counts it."""
    agents = (await trial.load.show("/v1/agents", 1)).json()["agents"]
    return {a["agent_id"]: (a["status"]["running"], a["status"]["capacity"]) for a in agents}


def _finished(trial: Trial) -> set[str]:
    """Requests whose handler ended."""
    ended = {end.run for end in trial.fleet.ends("ada")}
    return {start.request_id for start in trial.fleet.starts("ada") if start.run in ended}


async def _all_complete(trial: Trial, orders: Sequence[Order]) -> None:
    for order in orders:
        answer = await trial.load.ended(order)
        assert answer["status"] == "completed", f"{order.request_id} {order.capability}: {answer}"


ROWS = (
    Row(numbers="2b", title="gateway killed under load", fault=gateway_killed_under_load),
    Row(numbers="4b", title="gateways killed after 202", fault=gateways_killed_after_202),
    Row(numbers="5b", title="agent killed before its handler", fault=agent_killed_before_its_handler),
    Row(numbers="6b", title="agent killed during its handler", fault=agent_killed_during_its_handler),
    Row(numbers="7d", title="agent killed after its handler", fault=agent_killed_after_its_handler),
    Row(numbers="9", title="agent stopped and continued", fault=agent_stopped_and_continued),
    Row(numbers="9b", title="stopped agent succeeded, then continued", fault=stopped_agent_succeeded),
    Row(numbers="10", title="terminated under load", fault=terminated_under_load),
)
