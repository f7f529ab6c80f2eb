"""Processes killed at named steps: rows 1 to 8 of the matrix. All kill points are walked through."""

from tests.faults.echo import ONCE
from tests.faults.fleet import fetch
from tests.faults.history import Accepted, Unanswered
from tests.faults.kill_points import VARIABLE
from tests.faults.load import Order
from tests.faults.row import Fault, Row
from tests.faults.trial import Trial, until_recorded
from tests.faults.wire import tapped

MOST_ORDERS = 40
PAST_CLAIM_S = 9.0
"""A publish that nobody marked is repeated when its claim is over, after 6 seconds."""


async def _doomed_gateway(trial: Trial, point: str) -> None:
    trial.fleet.kill_gateway(0)
    await trial.fleet.start_gateway(0, **{VARIABLE: point})


async def _until_killed(trial: Trial, who: int | str, point: str) -> None:
    fleet = trial.fleet
    await trial.until(lambda: fleet.has_ended(who))
    program = fleet.gateways[who] if isinstance(who, int) else fleet.agents[who]
    await fleet.revive()
    assert f"killed at {point}" in program.text, program.text[-400:]
    trial.heal()


async def killed_before_accept_commit(trial: Trial) -> None:
    """Row 1: its client saw a broken connection, nothing exists, and the same key works afterwards."""
    point = "before_accept_commit"
    await _doomed_gateway(trial, point)
    order = trial.load.order(capability=ONCE)
    await trial.load.post(order, tries=1)
    assert {type(event) for event in trial.load.events[-1:]} == {Unanswered}
    await _until_killed(trial, 0, point)
    assert await fetch(trial.fleet.database_url, "SELECT request_id FROM requests") == []
    await trial.load.post(order)
    await _all_complete(trial, [order])


async def killed_before_publish(trial: Trial) -> None:
    """Row 2: the relay of any replica publishes what was committed; it runs once."""
    await _gateway_killed(trial, "after_accept_commit_before_publish")


async def killed_before_mark(trial: Trial) -> None:
    """Row 3: published twice, run once."""
    async with tapped(trial.fleet) as wire:
        await _gateway_killed(trial, "after_publish_before_mark", PAST_CLAIM_S)
        tokens = [frame.token for frame in wire.tasks]
    assert len(tokens) > len(set(tokens)), "nothing was published twice"


async def killed_after_202(trial: Trial) -> None:
    """Row 4: what was answered 202 can be read, and ends."""
    await _gateway_killed(trial, "after_202")
    assert any(isinstance(event, Accepted) for event in trial.load.events)


async def killed_before_result_commit(trial: Trial) -> None:
    """Row 7, at the gateway: the result is delivered to another one."""
    await _gateway_killed(trial, "before_result_commit")


async def killed_before_result_ack(trial: Trial) -> None:
    """Row 8, at the gateway: the result comes again and is a duplicate."""
    await _gateway_killed(trial, "after_result_commit_before_ack")
    await until_recorded(trial, "duplicate", 1)


async def _gateway_killed(trial: Trial, point: str, work_s: float = 0.02) -> None:
    await _doomed_gateway(trial, point)
    async with trial.load.flowing(2, most=60):
        orders = [trial.load.order(capability=ONCE, work_s=work_s) for _ in range(6)]
        for order in orders:
            await trial.load.post(order)
        await _until_killed(trial, 0, point)
    await _all_complete(trial, orders)


async def killed_before_claim(trial: Trial) -> None:
    """Row 5: received and not begun: delivered again, run once."""
    await _all_complete(trial, await _agent_killed(trial, "received_before_claim"))


async def killed_after_claim(trial: Trial) -> None:
    """Row 6: whether it ran nobody can know; it does not run again, and the answer says so."""
    orders = await _agent_killed(trial, "after_claim")
    unknown = {name for name, code in (await _codes(trial, orders)).items() if code == "outcome_unknown"}
    assert len(unknown) == 1
    assert not unknown & {start.request_id for start in trial.fleet.starts("ada")}


async def killed_before_store(trial: Trial) -> None:
    """Row 7: it ran and its outcome died with it: not again, and the answer says so."""
    codes = [*(await _codes(trial, await _agent_killed(trial, "after_run_before_store"))).values()]
    assert codes == [None] * (len(codes) - 1) + ["outcome_unknown"], codes


async def killed_after_store(trial: Trial) -> None:
    """Row 7: its successor tells the outcome from the inbox."""
    await _all_complete(trial, await _agent_killed(trial, "after_store_before_publish"))


async def killed_before_ack(trial: Trial) -> None:
    """Row 8: the task comes again and is answered from the inbox."""
    await _all_complete(trial, await _agent_killed(trial, "after_publish_before_ack"))
    await until_recorded(trial, "duplicate", 1)


async def _agent_killed(trial: Trial, point: str) -> list[Order]:
    """One task after the other, so that the last one is the only one it was killed with."""
    trial.fleet.kill_agent("ada")
    await trial.fleet.start_agent("ada", **{VARIABLE: point})
    orders: list[Order] = []
    while not trial.fleet.has_ended("ada"):
        assert len(orders) < MOST_ORDERS, "nothing was given to the agent"
        orders += await trial.load.accepted(1, capability=ONCE)
        while not (trial.fleet.has_ended("ada") or await trial.load.read(orders[-1])):
            await trial.clock.sleep(0.02)
    await _until_killed(trial, "ada", point)
    return orders


async def _codes(trial: Trial, orders: list[Order]) -> dict[str, str | None]:
    """How each ended: its error code, None where it was completed."""
    answers = [await trial.load.ended(order) for order in orders]
    return {a["request_id"]: (a["parts"][0]["error"] or {}).get("code") for a in answers}


async def _all_complete(trial: Trial, orders: list[Order]) -> None:
    codes = await _codes(trial, orders)
    assert set(codes.values()) == {None}, codes


def _row(numbers: str, title: str, fault: Fault) -> Row:
    return Row(numbers=numbers, title=title, fault=fault)


ROWS = (
    _row("1", "gateway killed before the commit of an accept", killed_before_accept_commit),
    _row("2", "gateway killed between commit and publish", killed_before_publish),
    _row("3", "gateway killed between publish and mark", killed_before_mark),
    _row("4", "gateway killed after a 202", killed_after_202),
    _row("5", "agent killed between delivery and claim", killed_before_claim),
    _row("6", "agent killed between claim and run", killed_after_claim),
    _row("7", "agent killed between run and inbox", killed_before_store),
    _row("7b", "agent killed between inbox and publish", killed_after_store),
    _row("7c", "gateway killed before the commit of a result", killed_before_result_commit),
    _row("8", "agent killed between publish and ack", killed_before_ack),
    _row("8b", "gateway killed between commit and ack of a result", killed_before_result_ack),
)
