"""An acknowledgement that the broker would not wait for costs a channel and a redelivery, nothing more."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import BaseModel, TypeAdapter

from dispatcher.amqp.connection import ConnectionRules
from dispatcher.channel.rabbitmq import RabbitChannel, RabbitRules
from dispatcher.identifiers import InstanceId, ReplicaId, new_id
from dispatcher.protocol.frames import (
    AcknowledgedFrame,
    RegisteredFrame,
    RegisterFrame,
    RegistryRequest,
    ResultFrame,
)
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import Topology
from dispatcher.sdk import Agent
from dispatcher.sdk.rabbitmq import LinkRules, RabbitLink
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from tests.conformance.channel_world import DEADLINE_S, ORDER, Recorder, consuming, following, task, text_of
from tests.services.rabbitmq import RabbitNode

IMPATIENT = ConnectionRules(first_delay_s=0.05, longest_delay_s=0.2)
ACK_WITHIN_S = 2
_requests: TypeAdapter[RegistryRequest] = TypeAdapter(RegistryRequest)


class Anything(BaseModel):
    """No input is needed."""


@dataclass
class Slow:
    """A handler that works until it is released, and counts how often it was started."""

    released: threading.Event = field(default_factory=threading.Event)
    starts: list[str] = field(default_factory=list)

    def agent(self) -> Agent:
        agent = Agent("order")

        @agent.handler("order.query", description=["Find an order"], idempotent=False)
        def query(_: Anything) -> str:
            self.starts.append("started")
            self.released.wait(DEADLINE_S)
            return "found"

        return agent


async def grant(body: bytes) -> bytes:
    """What a dispatcher answers."""
    request = _requests.validate_json(body)
    if not isinstance(request, RegisterFrame):
        return AcknowledgedFrame().model_dump_json().encode()
    granted = RegisteredFrame(
        agent_id=request.agent_id,
        instance_id=request.instance_id,
        lease_id=new_id(),
        heartbeat_ms=1000,
        offline_after_ms=9000,
        declaration_digest="1",
    )
    return granted.model_dump_json().encode()


@asynccontextmanager
async def hurried(broker: RabbitNode):
    """A channel over a broker that waits for acknowledgements `ACK_WITHIN_S` only."""
    await asyncio.to_thread(broker.start)
    for setting, milliseconds in (("consumer_timeout", 1000 * ACK_WITHIN_S), ("channel_tick_interval", 500)):
        command = f"application:set_env(rabbit, {setting}, {milliseconds})."
        await asyncio.to_thread(broker.control, "eval", command)
    topology, received = Topology(prefix="test"), Recorder()
    channel = RabbitChannel(
        broker.url, topology, ReplicaId(new_id()), rules=RabbitRules(connection=IMPATIENT)
    )
    async with channel.open(replace(received.inbound(), on_registry=grant)):
        async with asyncio.timeout(DEADLINE_S):
            await channel.ready()
        await channel.prepare(ORDER)
        yield channel, received


def link_to(broker: RabbitNode, instance_id: str) -> RabbitLink:
    rules = LinkRules(connection=IMPATIENT)
    return RabbitLink(broker.url, Topology(prefix="test"), InstanceId(instance_id), rules=rules)


@contextmanager
def releasing(slow: Slow) -> Iterator[None]:
    try:
        yield
    finally:
        slow.released.set()


@pytest.mark.timeout(180)
async def test_a_late_acknowledgement_settles_nothing_and_the_consumer_comes_back(own_broker: RabbitNode):
    async with (
        hurried(own_broker) as (channel, _),
        link_to(own_broker, new_id()) as link,
        consuming(link) as deliveries,
    ):
        await channel.send(ORDER, task("slow"))
        late = await following(deliveries)

        again = await following(deliveries)
        await late.settle(Settlement.ACK)
        await again.settle(Settlement.ACK)
        await channel.send(ORDER, task("next"))

        assert (late.is_lost, text_of(again)) == (True, "slow")
        assert text_of(await following(deliveries)) == "next"


@pytest.mark.timeout(180)
async def test_a_task_that_outlasts_the_brokers_patience_is_started_once_and_answered(
    own_broker: RabbitNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    slow, instance_id = Slow(), new_id()
    options = RuntimeOptions(instance_id=instance_id, channel="rabbitmq", reconnect_s=0.1)
    inbox = await SqliteInbox.open(tmp_path / "inbox.db")
    async with (
        hurried(own_broker) as (channel, received),
        link_to(own_broker, instance_id) as link,
        serving(Runtime(slow.agent(), link, inbox, options=options)),
    ):
        with releasing(slow):
            await channel.send(ORDER, task("slow"))
            await lost_channels(caplog, 2)

        await received.until(lambda: any(b'"success"' in frame for frame in received.results))
    await inbox.aclose()

    results = [frame for frame in received.results if b'"result"' in frame]
    assert len(slow.starts) == 1
    assert {ResultFrame.model_validate_json(frame).result.text for frame in results} == {"found"}


async def lost_channels(caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Until the broker gave up that many channels of a consumer."""
    async with asyncio.timeout(DEADLINE_S):
        while caplog.messages.count("amqp.lost") < count:
            await asyncio.to_thread(threading.Event().wait, 0.05)
