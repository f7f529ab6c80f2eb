"""A task and its result over aio-pika and nothing else: the limit for anything that does more.

Quorum task queue, durable classic reply queue, persistent and mandatory messages, publisher
confirms, manual acknowledgement after the result's confirm; uvloop and orjson.
`python -m dispatcher.bench.bare_task caller|worker URL NAME`, orders on its input.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aio_pika
import orjson
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from dispatcher.bench.closed_loop import closed_loop
from dispatcher.bench.echo import AT_ONCE, note
from dispatcher.bench.station import Order, Reply, run_station, say, serve_orders
from dispatcher.identifiers import new_id

_TIMEOUT_S = 30.0


def task_queue(name: str) -> str:
    """The queue that the worker reads."""
    return f"{name}.task"


def reply_queue(name: str) -> str:
    """The queue that the caller reads."""
    return f"{name}.reply"


@asynccontextmanager
async def _channel(url: str, name: str) -> AsyncIterator[AbstractChannel]:
    """A confirming channel, with both queues declared."""
    async with await aio_pika.connect_robust(url) as connection:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        await channel.set_qos(prefetch_count=AT_ONCE)
        await channel.declare_queue(task_queue(name), durable=True, arguments={"x-queue-type": "quorum"})
        await channel.declare_queue(reply_queue(name), durable=True, arguments={"x-queue-type": "classic"})
        yield channel


async def _publish(channel: AbstractChannel, key: str, document: object, **properties: str | None) -> None:
    message = aio_pika.Message(
        orjson.dumps(document),
        message_id=new_id(),
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        **properties,  # type: ignore[arg-type] # names and ids only
    )
    await channel.default_exchange.publish(message, key, mandatory=True, timeout=_TIMEOUT_S)


async def work(url: str, name: str) -> None:
    """Answer every task with what it holds, until the input ends."""
    async with _channel(url, name) as channel:

        async def on_task(message: AbstractIncomingMessage) -> None:
            given = orjson.loads(message.body)
            result = {"status": "success", "text": "done", "data": given["input"]}
            await _publish(channel, str(message.reply_to), result, correlation_id=message.correlation_id)
            await message.ack()

        queue = await channel.get_queue(task_queue(name))
        await queue.consume(on_task)
        say({"ready": True})
        await asyncio.to_thread(sys.stdin.buffer.read)


class Caller:
    """Sends tasks and waits for their results."""

    def __init__(self, channel: AbstractChannel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    async def on_reply(self, message: AbstractIncomingMessage) -> None:
        """Wake whoever waits for it."""
        await message.ack()
        waiter = self._waiting.pop(str(message.correlation_id), None)
        if waiter is not None and not waiter.done():
            waiter.set_result(message.body)

    async def call(self, given: Mapping[str, str]) -> bool:
        """One round trip."""
        task_id = new_id()
        self._waiting[task_id] = waiter = asyncio.get_running_loop().create_future()
        task = {"task_id": task_id, "text": "where is my parcel", "input": given}
        queue, reply_to = task_queue(self._name), reply_queue(self._name)
        await _publish(self._channel, queue, task, correlation_id=task_id, reply_to=reply_to)
        async with asyncio.timeout(_TIMEOUT_S):
            return bool(orjson.loads(await waiter)["status"] == "success")

    async def obey(self, order: Order) -> Reply:
        """Measure as told, or delete what is named."""
        if order["do"] == "closed":
            call = partial(self.call, {"note": note(order["payload_kb"])})
            return await closed_loop([call] * order["concurrency"], order["seconds"])
        return await self._delete(order["queues"], order["exchanges"])

    async def _delete(self, queues: Sequence[str], exchanges: Sequence[str]) -> Reply:
        for queue in (*queues, task_queue(self._name), reply_queue(self._name)):
            await self._channel.queue_delete(queue)
        for exchange in exchanges:
            await self._channel.exchange_delete(exchange)
        return {"deleted": len(queues) + len(exchanges)}


async def call(url: str, name: str) -> None:
    """Take orders until the input ends."""
    async with _channel(url, name) as channel:
        caller = Caller(channel, name)
        queue = await channel.get_queue(reply_queue(name))
        await queue.consume(caller.on_reply)
        say({"ready": True})
        await serve_orders(caller.obey)


if __name__ == "__main__":
    run_station(partial(call if sys.argv[1] == "caller" else work, *sys.argv[2:])())
