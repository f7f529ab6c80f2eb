"""Consumption of one queue that is put in place again whenever it is lost."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from aio_pika.abc import AbstractChannel, AbstractQueue

from dispatcher.amqp.connection import Connection, keep_up
from dispatcher.amqp.declare import Queue, declare_queue
from dispatcher.amqp.lane import Arrival, Lane, ignore
from dispatcher.amqp.outcomes import LIBRARY_ERRORS, named_errors
from dispatcher.amqp.settle import Received, Settler, delivery_tag
from dispatcher.errors import ConfigurationError
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)


def _ignore(*_: object) -> None:
    """For those who need not know."""


async def _unused(_: object) -> None:
    """What the library would call: no message reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What to consume and who takes it.

    `prefetch` is the most messages in hand at once. Without `acknowledged` messages count as
    settled when the broker sends them. `on_up` is told, at the start and at each change, whether
    the broker delivers. What `handle` gives back is run as a task of its own.
    """

    queue: Queue
    prefetch: int
    handle: Callable[[Received], Coroutine[object, object, None] | None]
    acknowledged: bool = True
    on_up: Callable[[bool], None] = _ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    queue: AbstractQueue
    tag: str
    lane: Lane


class Consumer:
    """Hands each message of a queue to its subscription's handler."""

    def __init__(self, connection: Connection, subscription: Subscription) -> None:
        self._connection = connection
        self._subscription = subscription
        self._place: _Place | None = None
        self._up = asyncio.Event()
        self._in_hand: set[asyncio.Task[None]] = set()
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
                if place := self._place:
                    with place.lane.call():
                        await place.queue.cancel(place.tag)
                await self._idle.wait()

    async def _consume(self) -> None:
        lost = asyncio.Event()
        async with self._connection.lane(lost, confirms=False) as (channel, lane):
            settler = Settler(lane)
            lane.listen(partial(self._take, settler))
            try:
                with lane.call():
                    self._place = await self._begin(channel, lane)
                self._tell_up(is_up=True)
                await lost.wait()
            finally:
                self._place = None
                self._tell_up(is_up=False)
                lane.listen(ignore)
                await self._end_handlers()
                settler.tell()
                lane.end()

    async def _begin(self, channel: AbstractChannel, lane: Lane) -> _Place:
        subscription = self._subscription
        async with asyncio.timeout(self._connection.rules.call_timeout_s):
            await channel.set_qos(prefetch_count=subscription.prefetch, global_=False)
            queue = await self._declare(channel)
            begun = await lane.channel.basic_consume(
                queue.name, _unused, no_ack=not subscription.acknowledged
            )
        return _Place(queue=queue, tag=str(begun.consumer_tag), lane=lane)

    def _tell_up(self, *, is_up: bool) -> None:
        if is_up == self.is_up:
            return
        if is_up:
            self._up.set()
        else:
            self._up.clear()
        self._subscription.on_up(is_up)

    async def _end_handlers(self) -> None:
        """Before our last word, so that what they decide is told."""
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

    def _take(self, settler: Settler, arrival: Arrival) -> None:
        tag = delivery_tag(arrival)
        if self._subscription.acknowledged:
            settler.note(tag)
        if self._is_draining:
            return
        received = Received(arrival, tag, settler, self._connection.clock.monotonic())
        try:
            work = self._subscription.handle(received)
        except Exception:
            log.exception("amqp.handler_failed")
            if self._subscription.acknowledged:
                settler.settle(tag, Settlement.DEAD)
            return
        if work:
            task = asyncio.get_running_loop().create_task(work)
            self._in_hand.add(task)
            self._idle.clear()
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._in_hand.discard(task)
        if not self._in_hand:
            self._idle.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("amqp.handler_failed", exc_info=error)
