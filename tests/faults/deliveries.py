"""Deliveries out of order, and ones that kill who takes them: rows 23 and 25 of the matrix."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus
from tests.faults.echo import FATAL
from tests.faults.fleet import READY_S, Fleet, through
from tests.faults.row import USUAL_LIVENESS, Row
from tests.faults.trial import Trial, until_recorded
from tests.faults.wire import tapped
from tests.scenario.program import Program

QUESTION = "我上周买的手机怎么还没发货？另外现在有没有优惠？"
"""Two parts; the second needs the first one's result."""
USER = "u1001"
DELIVERIES, ATTEMPTS = 5, 3
"""The first and four more of each attempt; attempts of a task."""
LONG_ATTEMPTS = {"DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "50"}
UNDERSTANDING = {
    **USUAL_LIVENESS,
    "DISPATCHER_ENCODER__NAME": "use",
    "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "20",
}


async def second_part_first(trial: Trial) -> None:
    """Row 23: whatever comes for a part that waits changes nothing; it goes out after the other's result."""
    fleet = trial.fleet
    order, promotion = (_sample_agent(fleet, name) for name in ("order", "promotion"))
    with order, promotion:
        for program in (order, promotion):
            await asyncio.to_thread(program.wait_for, r"registration\.granted", READY_S)
        async with tapped(fleet, ("order", "promotion")) as wire:
            order.send(signal.SIGSTOP)
            request_id = await trial.load.ask(QUESTION, user_id=USER)
            await trial.until(lambda: bool(wire.tasks))
            await wire.send_result(_forged(request_id, position=1))
            await until_recorded(trial, "rejected", 1)
            assert {frame.agent_id for frame in wire.tasks} == {"order"}
            order.send(signal.SIGCONT)
            trial.heal()
            document = await _ended(trial, request_id)
            assert document["status"] == "completed", document
            assert [*dict.fromkeys(frame.agent_id for frame in wire.tasks)] == ["order", "promotion"]
        for program in (order, promotion):
            assert await asyncio.to_thread(program.stop) == 0


async def deliveries_that_kill(trial: Trial) -> None:
    """Row 25: who takes it dies, again and again, until it is dead-lettered and its request fails."""
    fleet = trial.fleet
    async with tapped(fleet):
        (order,) = await trial.load.accepted(1, capability=FATAL)
        end = trial.clock.monotonic() + 90
        while not await trial.load.read(order):
            assert trial.clock.monotonic() < end, "its request did not end"
            await fleet.revive()
            await trial.clock.sleep(0.1)
        trial.heal()
        await fleet.revive()
        assert order.answer["status"] == "failed", order.answer
        starts = Counter(start.agent for name in fleet.agents for start in fleet.starts(name))
        assert sum(starts.values()) <= DELIVERIES * ATTEMPTS, starts
        (first, times), *_ = starts.most_common()
        assert times == DELIVERIES, starts
        (part,) = order.answer["parts"]
        assert (part["agent_id"], part["error"]["code"]) == (first, "delivery_limit"), part


def _sample_agent(fleet: Fleet, name: str) -> Program:
    broker = ("--broker", through(fleet.broker_url, fleet.wires.agent_broker["ada"]))
    return Program(sys.executable, "-m", f"agents.{name}", *broker, "--prefix", fleet.topology.prefix)


def _forged(request_id: str, *, position: int) -> ResultFrame:
    """A result that nobody was asked for."""
    return ResultFrame(
        request_id=request_id,
        task_id=f"{request_id}.{position}",
        attempt=1,
        token="f" * 64,
        instance_id="forger",
        status=ResultStatus.SUCCESS,
        result=ResultBody(text="too early"),
    )


async def _ended(trial: Trial, request_id: str) -> Mapping[str, Any]:
    end = trial.clock.monotonic() + 30
    while True:
        document: Mapping[str, Any] = (await trial.load.show(f"/v1/requests/{request_id}")).json()
        if document["status"] != "open":
            return document
        assert trial.clock.monotonic() < end, document
        await trial.clock.sleep(0.1)


ROWS = (
    Row(numbers="23", title="second part first", fault=second_part_first, settings=UNDERSTANDING),
    Row(
        numbers="25",
        title="deliveries that kill",
        fault=deliveries_that_kill,
        settings={**USUAL_LIVENESS, **LONG_ATTEMPTS},
    ),
)
