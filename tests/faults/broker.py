"""A broker that is away, refuses, blocks or is silent: rows 11b, 12, 16, 17 and 19 to 21 of the matrix."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
import httpx2

from dispatcher.protocol.topology import Topology
from tests.faults.echo import ONCE
from tests.faults.history import Refused, Unanswered
from tests.faults.load import Order
from tests.faults.row import USUAL_LIVENESS, Row
from tests.faults.trial import Trial
from tests.services.rabbitmq import RabbitNode

AT_ONCE_S = 2.0
"""Nothing of the broker is waited for before a client is answered."""
PATIENT = {**USUAL_LIVENESS, "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "30"}
BLOCKED_S = 8.0


async def young_queues_killed(trial: Trial) -> None:
    """Row 11b: a queue that came up leaderless is found out, declared again and refilled."""
    async with trial.load.flowing(most=200):
        await _control(trial).kill()
        await _control(trial).start()
        trial.heal()
        await trial.clock.sleep(5)
    await trial.load.drain(60)
    print(f"        {trial.fleet.text().count('queue.leaderless')} times a queue was found leaderless")
    await _all_complete(trial, trial.load.orders)


async def broker_away_at_start(trial: Trial) -> None:
    """Row 12: gateways start all the same, say what they miss, and recover by themselves."""
    fleet, wire = trial.fleet, trial.fleet.wires.gateway_broker
    for number in (0, 1):
        fleet.kill_gateway(number)
    wire.refuse()
    for number in (0, 1):
        await fleet.start_gateway(number)
    assert (await trial.load.show("/healthz")).status_code == 200
    ready = await trial.load.show("/readyz")
    assert ready.status_code == 503, ready.text
    assert "broker" in ready.json()["parts"]["channel"], ready.text
    orders = [trial.load.order(capability=ONCE) for _ in range(6)]
    for order in orders:
        await trial.load.post(order, tries=1)
    wire.refuse(refusing=False)
    trial.heal()
    await _until_ready(trial)
    for order in orders:
        if order.request_id is None:
            await trial.load.post(order)
    await _all_complete(trial, orders)


async def confirms_swallowed(trial: Trial) -> None:
    """Row 16: who gets no confirm publishes again under the same token; it runs once."""
    wire = trial.fleet.wires.gateway_broker
    async with trial.load.flowing():
        await trial.clock.sleep(1)
        wire.mute(trial.fleet.topology.task_exchange.encode())
        await trial.clock.sleep(4)
        wire.mute(b"")
        trial.heal()
        await trial.clock.sleep(8)
    assert "task.publish_unknown" in trial.fleet.text()
    await _all_complete(trial, trial.load.orders)


async def queues_full(trial: Trial) -> None:
    """Row 17: the broker refuses what is over its limit; the part is `unavailable`, or goes elsewhere."""
    control, pattern = _control(trial), f"^{trial.fleet.topology.prefix}\\.task\\."
    limit = json.dumps({"max-length": 2, "overflow": "reject-publish"})
    await control.run("set_policy", "full", pattern, limit, "--apply-to", "queues")
    for wire in trial.fleet.wires.agent_broker.values():
        wire.refuse()
        wire.cut()
    # The limit is a soft one: what is on its way when it is reached gets in, so the rest comes after it.
    orders = await trial.load.accepted(8, capability=ONCE)
    await trial.clock.sleep(1)
    orders += await trial.load.accepted(16, capability=ONCE)
    await trial.until(lambda: "task.not_delivered" in trial.fleet.text())
    await trial.clock.sleep(2)
    await control.run("clear_policy", "full")
    for wire in trial.fleet.wires.agent_broker.values():
        wire.refuse(refusing=False)
    trial.heal()
    answers = [await trial.load.ended(order) for order in orders]
    errors = [answer["parts"][0]["error"] for answer in answers]
    assert {error["code"] for error in errors if error} <= {"unavailable"}, errors
    assert None in errors, "what was in the queues was not delivered"
    await _all_complete(trial, await trial.load.accepted(6))


async def queue_of_another_kind(trial: Trial) -> None:
    """Row 19: a queue with other arguments is named at start; the gateway takes up work once it is gone."""
    fleet, other = trial.fleet, Topology(prefix=f"{trial.fleet.topology.prefix}x")
    name = other.results_queue
    async with _queue_of_another_kind(fleet.broker_url, name) as channel:
        fleet.kill_gateway(1)
        program = fleet.gateway_program(1, DISPATCHER_BROKER__PREFIX=other.prefix)
        fleet.gateways[1] = program
        await trial.until(lambda: fleet.has_ended(1))
        assert program.wait() == 1
        assert name in program.text
        await channel.queue_delete(name)
        fleet.gateways[1] = fleet.gateway_program(1, DISPATCHER_BROKER__PREFIX=other.prefix)
        trial.heal()
        await _until_ready(trial, 1)
    fleet.kill_gateway(1)
    await fleet.start_gateway(1)


@asynccontextmanager
async def _queue_of_another_kind(url: str, name: str) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
    connection = await aio_pika.connect(url)
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "classic"})
        yield channel


async def publishers_blocked(trial: Trial) -> None:
    """Row 20: under a memory alarm clients are answered as ever; what was accepted is delivered after it."""
    control = _control(trial)
    async with trial.load.flowing():
        await trial.clock.sleep(1)
        await control.run("set_vm_memory_high_watermark", "absolute", "1MiB")
        await trial.clock.sleep(1)
        orders = [trial.load.order() for _ in range(5)]
        for order in orders:
            await _post_quickly(trial, order)
        await trial.clock.sleep(BLOCKED_S)
        await control.run("set_vm_memory_high_watermark", "absolute", "2GB")
        trial.heal()
        await trial.clock.sleep(3)
    assert not any(isinstance(event, Unanswered) for event in trial.load.events)
    await _all_complete(trial, trial.load.orders)


async def acknowledged_too_late(trial: Trial) -> None:
    """Row 21: the broker closes the channel of an unacknowledged task; it is delivered again and not run."""
    fleet, control = trial.fleet, _control(trial)
    await control.evaluate("application:set_env(rabbit, channel_tick_interval, 1000)")
    await control.evaluate("application:set_env(rabbit, consumer_timeout, 3000)")
    try:
        for wire in fleet.wires.agent_broker.values():
            wire.cut()
        await trial.clock.sleep(2)
        lost = fleet.text().count("amqp.lost")
        orders = await trial.load.accepted(4, capability=ONCE, work_s=10)
        await trial.until(lambda: fleet.text().count("amqp.lost") > lost, 15)
        trial.heal()
        await _all_complete(trial, orders)
    finally:
        await control.evaluate("application:set_env(rabbit, consumer_timeout, 1800000)")
        await control.evaluate("application:set_env(rabbit, channel_tick_interval, 60000)")


class _Control:
    """The broker's own commands, off the event loop."""

    def __init__(self, node: RabbitNode) -> None:
        self._node = node

    async def run(self, *arguments: str) -> None:
        await asyncio.to_thread(self._node.control, *arguments)

    async def evaluate(self, expression: str) -> None:
        await self.run("eval", f"{expression}.")

    async def kill(self) -> None:
        await asyncio.to_thread(self._node.kill)

    async def start(self) -> None:
        await asyncio.to_thread(self._node.start)


def _control(trial: Trial) -> _Control:
    assert trial.node is not None
    return _Control(trial.node)


async def _post_quickly(trial: Trial, order: Order) -> None:
    began = trial.clock.monotonic()
    await trial.load.post(order, tries=1)
    took_s = trial.clock.monotonic() - began
    assert took_s < AT_ONCE_S, f"answered after {took_s:.1f} s"
    assert order.request_id or isinstance(trial.load.events[-1], Refused)


async def _until_ready(trial: Trial, gateway: int = 0, seconds: float = 30.0) -> None:
    end = trial.clock.monotonic() + seconds
    while True:
        try:
            answer = (await trial.load.show("/readyz", gateway)).text
        except httpx2.HTTPError as error:
            answer = str(error)
        if '"ready"' in answer:
            return
        assert trial.clock.monotonic() < end, f"not ready: {answer}"
        await trial.clock.sleep(0.2)


async def _all_complete(trial: Trial, orders: list[Order]) -> None:
    answers = [await trial.load.ended(order) for order in orders if order.request_id]
    ends = {str((answer["parts"][0]["error"] or {}).get("code")) for answer in answers}
    assert ends <= {"None"}, f"what was accepted ended as {ends}"


ROWS = (
    Row(numbers="12", title="broker away at start", fault=broker_away_at_start, settings=USUAL_LIVENESS),
    Row(numbers="16", title="confirms swallowed", fault=confirms_swallowed, settings=USUAL_LIVENESS),
    Row(numbers="17", title="task queues full", fault=queues_full, settings=USUAL_LIVENESS),
    Row(numbers="19", title="queue of another kind", fault=queue_of_another_kind),
    Row(
        numbers="20",
        title="publishers blocked by an alarm",
        fault=publishers_blocked,
        settings=PATIENT,
        alone=True,
    ),
    Row(
        numbers="21", title="acknowledged too late", fault=acknowledged_too_late, settings=PATIENT, alone=True
    ),
    Row(
        numbers="11b",
        title="broker killed, queues young",
        fault=young_queues_killed,
        settings=USUAL_LIVENESS,
        alone=True,
    ),
)
