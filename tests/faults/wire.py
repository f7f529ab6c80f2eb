"""A client of the broker that does what no dispatcher or agent would: copies, repeats, forges, deletes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus, TaskFrame
from dispatcher.protocol.topology import RESULTS_KEY, Topology
from tests.faults.fleet import AGENTS, Fleet


@dataclass(slots=True, kw_only=True)
class Wire:
    """Sees every task and result frame that is published while it is open, and publishes what it is told."""

    topology: Topology
    channel: AbstractChannel
    tasks: list[TaskFrame] = field(default_factory=list)
    results: list[ResultFrame] = field(default_factory=list)

    async def send(self, exchange: str, key: str, body: bytes, kind: str = "task") -> None:
        """Publish, confirmed and persistent, straight to the broker."""
        message = aio_pika.Message(body, type=kind, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        target = await self.channel.get_exchange(exchange, ensure=False)
        await target.publish(message, key)

    async def send_task(self, frame: TaskFrame) -> None:
        """Deliver a task frame once more."""
        await self.send(self.topology.task_exchange, frame.agent_id, frame.model_dump_json().encode())

    async def send_result(self, frame: ResultFrame) -> None:
        """Tell a result, as if an agent had."""
        body = frame.model_dump_json().encode()
        await self.send(self.topology.result_exchange, RESULTS_KEY, body, "result")

    @staticmethod
    def answer_to(frame: TaskFrame, text: str) -> ResultFrame:
        """A valid result for a task frame, which its agent never gave."""
        return ResultFrame(
            request_id=frame.request_id,
            task_id=frame.task_id,
            attempt=frame.attempt,
            token=frame.token,
            instance_id="forger",
            status=ResultStatus.SUCCESS,
            result=ResultBody(text=text),
        )

    async def delete_task_queue(self, agent: str) -> None:
        """Delete an agent's queue with everything in it."""
        await self.channel.queue_delete(self.topology.task_queue(AgentId(agent)))


@asynccontextmanager
async def tapped(fleet: Fleet, agents: Sequence[str] = AGENTS) -> AsyncIterator[Wire]:
    """A wire beside the fleet's own connections; its copies are of what these agents and gateways get."""
    topology = fleet.topology
    connection = await aio_pika.connect(fleet.broker_url)
    async with connection:
        wire = Wire(topology=topology, channel=await connection.channel())
        queue = await wire.channel.declare_queue(exclusive=True, arguments={"x-queue-type": "classic"})
        keys: Sequence[tuple[str, str]] = (
            *((topology.task_exchange, name) for name in agents),
            (topology.result_exchange, RESULTS_KEY),
        )
        for exchange, key in keys:
            await queue.bind(exchange, key)

        async def keep(message: AbstractIncomingMessage) -> None:
            if message.type == "task":
                wire.tasks.append(TaskFrame.model_validate_json(message.body))
            elif message.type == "result":
                wire.results.append(ResultFrame.model_validate_json(message.body))

        await queue.consume(keep, no_ack=True)
        yield wire
