"""Consumption of one queue that is put in place again whenever it is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, cast

from aio_pika.abc import AbstractChannel, AbstractQueue
from aiormq.abc import DeliveredMessage

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import Connection, keep_up
from dispatcher.amqp.declare import Queue, declare_queue
from dispatcher.amqp.outcomes import LIBRARY_ERRORS, named_errors
from dispatcher.amqp.settle import Received, Settler
from dispatcher.errors import ConfigurationError


def _ignore(*_: object) -> None:
    """For those who need not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What to consume and who takes it.

    `prefetch` is the most messages in hand at once. Without `acknowledged` messages count as
    settled when the broker sends them. `on_up` is told, at the start and at each change, whether
    the broker delivers.
    """

    queue: Queue
    prefetch: int
    handle: Callable[[Received], Awaitable[None]]
    acknowledged: bool = True
    on_up: Callable[[bool], None] = _ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    queue: AbstractQueue
    tag: str


class Consumer:
    """Hands each message of a queue to its subscription's handler, each in a task of its own."""

    def __init__(self, connection: Connection, subscription: Subscription) -> None:
        self._connection = connection
        self._subscription = subscription
        self._place: _Place | None = None
        self._up = asyncio.Event()
        self._in_hand: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False
        self.misfit: str | None = None
        """Why the queue can't be consumed as configured, in one sentence."""

    @property
    def queue(self) -> Queue:
        """What it consumes."""
        return self._subscription.queue

    @property
    def is_up(self) -> bool:
        """Whether the broker delivers to us."""
        return self._up.is_set()

    async def queue_name(self) -> str:
        """The name of the queue that is being consumed, as soon as there is one."""
        await self._up.wait()
        return self._place.queue.name if self._place else ""

    async def run(self) -> NoReturn:
        """Keep consuming until cancelled; unsettled messages are then delivered again."""
        self._subscription.on_up(self.is_up)
        await keep_up(
            self._consume, f"{self._connection.name} consumer", self._connection.rules, self._connection.clock
        )

    async def drain(self) -> None:
        """Take no more messages and wait for those in hand, at most `close_timeout_s` seconds."""
        self._is_draining = True
        with suppress(*LIBRARY_ERRORS), named_errors():
            async with asyncio.timeout(self._connection.rules.close_timeout_s):
                if self._place:
                    await self._place.queue.cancel(self._place.tag)
                await self._idle.wait()

    async def _consume(self) -> None:
        lost, subscription = asyncio.Event(), self._subscription
        async with self._connection.channel(lost, confirms=False) as channel:
            async with asyncio.timeout(self._connection.rules.call_timeout_s):
                await channel.set_qos(prefetch_count=subscription.prefetch, global_=False)
                queue = await self._declare(channel)
                # One task for a message: the library's own queue makes two, and copies all properties.
                wire = await channel.get_underlay_channel()
                settler = Settler(wire)
                take = partial(self._take, settler)
                begun = await wire.basic_consume(queue.name, take, no_ack=not subscription.acknowledged)
            self._place = _Place(queue=queue, tag=str(begun.consumer_tag))
            self._up.set()
            subscription.on_up(self.is_up)
            try:
                async with alongside(settler.run()):
                    await lost.wait()
            finally:
                self._up.clear()
                self._place = None
                subscription.on_up(self.is_up)
                await self._end_handlers()
                await settler.tell()

    async def _end_handlers(self) -> None:
        """The channel's end would cancel them too, but after our last word; so what they decide is told."""
        for task in self._in_hand:
            if not task.cancelling():
                task.cancel()
        if self._in_hand:
            await asyncio.wait(set(self._in_hand), timeout=self._connection.rules.close_timeout_s)

    async def _declare(self, channel: AbstractChannel) -> AbstractQueue:
        self.misfit = None
        try:
            return await declare_queue(channel, self._subscription.queue)
        except ConfigurationError as error:
            self.misfit = error.message
            raise

    async def _take(self, settler: Settler, message: DeliveredMessage) -> None:
        if self._subscription.acknowledged:
            settler.note(message.delivery_tag or 0)
        if self._is_draining:
            return
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._in_hand.add(task)
        self._idle.clear()
        try:
            await self._subscription.handle(Received(message, settler, self._connection.clock.monotonic()))
        finally:
            self._in_hand.discard(task)
            if not self._in_hand:
                self._idle.set()
