"""Whether queues exist and answer, found out without leaving a trace in them.

A quorum queue that lost its leader still answers declarations, and its state reads "running"; but
what has to go through its log (publish, get, consume) gets no answer, ever. So an empty queue is
asked for a message: one with a leader says at once that it has none. One that reports messages is
left alone: its tasks are not ours to take.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelNotFoundEntity
from aiormq import spec

from dispatcher.amqp.connection import Connection, is_cancelled
from dispatcher.amqp.declare import Queue, declare_queue
from dispatcher.amqp.outcomes import LIBRARY_ERRORS
from dispatcher.identifiers import new_id
from dispatcher.protocol.topology import QueueArguments

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Channels that ask at the same time; each asks one queue after the other."""
_DELETE_TIMEOUT_S = 15.0
"""RabbitMQ 3.10 takes 5.0 s to delete a queue without a leader."""
_CONTROL_ARGUMENTS: QueueArguments = {"x-queue-type": "quorum", "x-expires": 60_000}


class Standing(Enum):
    """What became of asking a queue."""

    SOUND = auto()
    MISSING = auto()
    SILENT = auto()
    """It exists and gave no answer in time."""


class Probe:
    """Asks through a connection of its own, for a silent queue blocks the channel that asks."""

    def __init__(self, connection: Connection, answer_s: float) -> None:
        self._connection = connection
        self._answer_s = answer_s

    async def look(self, names: Iterable[str]) -> Mapping[str, Standing]:
        """The standing of each queue; those left out could not be asked, or not to the end."""
        left, found = deque(names), dict[str, Standing]()
        async with asyncio.TaskGroup() as asking:
            for _ in range(min(AT_ONCE, len(left))):
                asking.create_task(self._work_off(left, found))
        return found

    async def quorum_works(self, name: str) -> bool:
        """Whether a quorum queue made just now answers: then the broker and its disk do their work."""
        control = Queue(name=f"{name}.{new_id()}", arguments=_CONTROL_ARGUMENTS)
        try:
            async with self._connection.channel(asyncio.Event(), confirms=False) as channel:
                async with asyncio.timeout(self._answer_s):
                    await declare_queue(channel, control)
                answered = await self._ask(channel, control.name) is Standing.SOUND
                if answered:
                    async with asyncio.timeout(_DELETE_TIMEOUT_S):
                        await channel.queue_delete(control.name)
                return answered
        except LIBRARY_ERRORS as error:
            log.warning("queue.control_failed", extra={"reason": type(error).__name__})
            return False

    async def delete(self, name: str) -> bool:
        """Delete a queue with all that is in it; whether that was confirmed."""
        try:
            async with (
                self._connection.channel(asyncio.Event(), confirms=False) as channel,
                asyncio.timeout(_DELETE_TIMEOUT_S),
            ):
                await channel.queue_delete(name)
        except LIBRARY_ERRORS as error:
            log.warning("queue.not_deleted", extra={"queue": name, "reason": type(error).__name__})
            return False
        return True

    async def _work_off(self, left: deque[str], found: dict[str, Standing]) -> None:
        """Ask one queue after the other, on a new channel after each that used one up."""
        try:
            while left:
                async with self._connection.channel(asyncio.Event(), confirms=False) as channel:
                    await self._ask_in_turn(channel, left, found)
        except LIBRARY_ERRORS as error:
            log.info("queue.not_asked", extra={"reason": type(error).__name__})
        except asyncio.CancelledError:
            if is_cancelled():
                raise

    async def _ask_in_turn(
        self, channel: AbstractChannel, left: deque[str], found: dict[str, Standing]
    ) -> None:
        while left:
            name = left.popleft()
            found[name] = await self._ask(channel, name)
            if found[name] is not Standing.SOUND:
                return

    async def _ask(self, channel: AbstractChannel, name: str) -> Standing:
        """After any other answer than SOUND the channel can't be used any more."""
        try:
            async with asyncio.timeout(self._answer_s):
                queue = await channel.get_queue(name)
        except ChannelNotFoundEntity:
            return Standing.MISSING
        if queue.declaration_result.message_count:
            return Standing.SOUND
        try:
            wire = await channel.get_underlay_channel()
            found = await wire.basic_get(name, timeout=self._answer_s)
        except TimeoutError:
            return Standing.SILENT
        if isinstance(found.delivery, spec.Basic.GetOk):
            await wire.basic_reject(found.delivery_tag or 0, requeue=True, wait=False)
        return Standing.SOUND
