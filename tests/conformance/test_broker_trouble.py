"""A broker that is absent, full, short of memory or set up by somebody else is named, and lived through."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import aio_pika
import httpx2
import pytest
from aio_pika.abc import FieldValue

from dispatcher.amqp.connection import ConnectionRules
from dispatcher.assembly.running import open_dispatcher
from dispatcher.channel.rabbitmq import RabbitChannel, RabbitRules
from dispatcher.clock import SystemClock
from dispatcher.errors import ConfigurationError, NotSentError, OutcomeUnknownError
from dispatcher.identifiers import InstanceId, LeaseId, ReplicaId, new_id
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.protocol.topology import Topology
from dispatcher.registry.agent import Agent, InboxKind, Instance, Liveness, LivenessRules
from dispatcher.registry.repository import RegistrySnapshot
from dispatcher.registry.view import LiveView
from dispatcher.settings import load_settings
from tests.conformance.channel_world import DEADLINE_S, ORDER, Recorder, task
from tests.services.rabbitmq import RabbitNode

Arguments = dict[str, FieldValue]

IMPATIENT = ConnectionRules(first_delay_s=0.05, longest_delay_s=0.2, call_timeout_s=1.0, close_timeout_s=0.5)
NO_BROKER = "agents can't be reached: no broker"
BLOCKED = "the broker blocks publishers: it is short of memory or disk"


def own_topology() -> Topology:
    return Topology(prefix=f"test-{new_id()}")


def channel_to(url: str, topology: Topology) -> RabbitChannel:
    return RabbitChannel(url, topology, ReplicaId(new_id()), rules=RabbitRules(connection=IMPATIENT))


async def until(reached: Callable[[], bool]) -> None:
    """There is no event for it: a look every 10 ms."""
    async with asyncio.timeout(DEADLINE_S):
        while not reached():
            await SystemClock().sleep(0.01)


async def declare_by_hand(url: str, name: str, arguments: Arguments) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.declare_queue(name, durable=True, arguments=arguments)


async def delete_by_hand(url: str, name: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.queue_delete(name)


async def count_by_hand(url: str, name: str) -> int | None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        return (await channel.get_queue(name)).declaration_result.message_count


@pytest.mark.parametrize("name", ["results_queue", "signals_queue", "registry_queue", "dead_queue"])
async def test_a_queue_of_ours_with_other_arguments_stops_the_start_and_is_named(amqp_url: str, name: str):
    topology = own_topology()
    queue = getattr(topology, name)
    await declare_by_hand(amqp_url, queue, {"x-queue-type": "classic", "x-max-length": 7})

    with pytest.raises(ConfigurationError, match=f"queue {queue} exists with other arguments"):
        async with channel_to(amqp_url, topology).open(Recorder().inbound()):
            pass

    await delete_by_hand(amqp_url, queue)


@pytest.mark.timeout(180)
async def test_what_stands_in_the_way_of_a_late_broker_is_told_and_works_once_it_is_gone(
    own_broker: RabbitNode,
):
    await asyncio.to_thread(own_broker.start)
    topology = own_topology()
    await declare_by_hand(own_broker.url, topology.results_queue, {"x-queue-type": "classic"})
    await asyncio.to_thread(own_broker.stop)
    channel = channel_to(own_broker.url, topology)

    async with channel.open(Recorder().inbound()):
        assert channel.problem() == NO_BROKER
        await asyncio.to_thread(own_broker.start)
        await until(lambda: topology.results_queue in str(channel.problem()))
        await delete_by_hand(own_broker.url, topology.results_queue)
        await until(channel.is_ready)


@pytest.mark.timeout(180)
async def test_a_broker_that_blocks_publishers_is_told_and_nothing_is_written_meanwhile(
    own_broker: RabbitNode,
):
    await asyncio.to_thread(own_broker.start)
    topology = own_topology()
    channel = channel_to(own_broker.url, topology)
    async with channel.open(Recorder().inbound()):
        async with asyncio.timeout(DEADLINE_S):
            await channel.ready()
        await channel.prepare(ORDER)
        await asyncio.to_thread(own_broker.control, "set_vm_memory_high_watermark", "0.0000001")
        with pytest.raises(OutcomeUnknownError):
            await channel.send(ORDER, task("blocked"))
        await until(lambda: channel.problem() == BLOCKED)

        begun = asyncio.get_running_loop().time()
        with pytest.raises(NotSentError):
            await channel.send(ORDER, task("never written"))
        waited = asyncio.get_running_loop().time() - begun
        still = channel.problem()
        await asyncio.to_thread(own_broker.control, "set_vm_memory_high_watermark", "0.9")
        await until(channel.is_ready)
        await channel.send(ORDER, task("after"))
        stored = await count_by_hand(own_broker.url, topology.task_queue(ORDER))

    assert (round(waited), still, stored) == (1, BLOCKED, 2)


@pytest.mark.timeout(180)
async def test_agents_outlive_an_outage_that_is_longer_than_their_silence_may_be(own_broker: RabbitNode):
    await asyncio.to_thread(own_broker.start)
    rules = LivenessRules(heartbeat_s=0.1, suspect_after_s=0.5, offline_after_s=1.0)
    view = LiveView(rules=rules, clock=SystemClock())
    view.apply(RegistrySnapshot(version=1, agents=(registered(),), instances=(alive(),), contracts=()))
    heard = replace(Recorder().inbound(), on_hearing=lambda is_up: view.hearing.set(is_up=is_up))
    channel = channel_to(own_broker.url, own_topology())

    async with channel.open(heard):
        async with asyncio.timeout(DEADLINE_S):
            await channel.ready()
        await asyncio.to_thread(own_broker.kill)
        await until(lambda: view.hearing.is_down)
        begun = asyncio.get_running_loop().time()
        await asyncio.to_thread(own_broker.start)
        await until(lambda: not view.hearing.is_down)
        lasted = asyncio.get_running_loop().time() - begun

        assert lasted > rules.offline_after_s
        assert view.status(ORDER).liveness is not Liveness.OFFLINE
        await until(lambda: view.status(ORDER).liveness is Liveness.OFFLINE)


def registered() -> Agent:
    capability = CapabilityDeclaration(name="order.query", descriptions=["Find an order"])
    return Agent(
        agent_id=ORDER,
        declaration=Declaration(capabilities=[capability]),
        digest="1",
        environment="production",
    )


def alive() -> Instance:
    return Instance(
        agent_id=ORDER,
        name="one",
        instance_id=InstanceId("one"),
        lease_id=LeaseId("lease"),
        inbox=InboxKind.MEMORY,
    )


@pytest.mark.timeout(180)
async def test_a_gateway_starts_without_its_broker_says_so_and_recovers_alone(
    own_broker: RabbitNode, tmp_path: Path
):
    settings = load_settings(
        data_dir=tmp_path / "data",
        auth={"development": True},
        encoder={"name": "hashing"},
        broker={"url": own_broker.url},
    )
    async with open_dispatcher(settings) as running:
        transport = httpx2.ASGITransport(app=running.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            health = await client.get("/healthz")
            before = await client.get("/readyz")
            await asyncio.to_thread(own_broker.start)
            await until(running.parts.channel.is_ready)
            after = await client.get("/readyz")

    assert (health.status_code, before.status_code, after.status_code) == (200, 503, 200)
    assert before.json()["parts"] == {"channel": NO_BROKER}
