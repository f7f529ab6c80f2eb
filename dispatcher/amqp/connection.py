"""A connection to the broker that is opened again whenever it is lost.

The library's own recovery does not retry the first connect and can't tell when it gave up, so
connections, publishers and consumers are each kept up by the one loop in `keep_up`.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn, cast

import aio_pika
from aio_pika.abc import AbstractChannel
from aiormq import Channel
from yarl import URL

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.lane import Lane
from dispatcher.amqp.outcomes import LIBRARY_ERRORS, named_errors
from dispatcher.amqp.transport import TurnTransports
from dispatcher.backoff import BackoffRules, pauses
from dispatcher.clock import Clock
from dispatcher.errors import ConfigurationError

log = logging.getLogger(__name__)

_LOOK_S = 0.5
_ASK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRules:
    """Limits of every AMQP call, in seconds.

    After a failure the next try comes after `first_delay_s`, doubled up to `longest_delay_s`,
    each time shortened at random to as little as half.
    """

    connect_timeout_s: float = 3.0
    call_timeout_s: float = 5.0
    close_timeout_s: float = 5.0
    heartbeat_s: int = 10
    first_delay_s: float = 0.2
    longest_delay_s: float = 5.0


DEFAULT_RULES = ConnectionRules()


class Connection:
    """One connection under a name that the broker shows."""

    def __init__(self, url: str, name: str, rules: ConnectionRules, clock: Clock) -> None:
        self._url = URL(url).update_query(name=name, heartbeat=rules.heartbeat_s)
        self.name = name
        self.rules = rules
        self.clock = clock
        self._connection: aio_pika.Connection | None = None
        self._transports = TurnTransports()
        self._up = asyncio.Event()
        self._lost = asyncio.Event()
        self._tried = asyncio.Event()
        self._unblocked = asyncio.Event()
        self._unblocked.set()

    async def run(self) -> NoReturn:
        """Keep the connection up until cancelled, then close it."""
        await keep_up(self._connect, self.name, self.rules, self.clock)

    @property
    def is_blocked(self) -> bool:
        """Whether the broker said that it reads nothing more from us, for want of memory or disk."""
        return not self._unblocked.is_set()

    async def unblocked(self) -> None:
        """Return as soon as the broker reads what we write."""
        await self._unblocked.wait()

    async def tried(self) -> bool:
        """Whether the connection is up, as soon as it was tried for the first time."""
        await self._tried.wait()
        return self._up.is_set()

    @asynccontextmanager
    async def channel(self, lost: asyncio.Event, *, confirms: bool) -> AsyncIterator[AbstractChannel]:
        """Open a channel as soon as the connection is up; `lost` is set when it or its consumer ends.

        Publishing with `confirms` raises for what the broker returns or refuses. All that calls on it
        raise is among `LIBRARY_ERRORS` outside.
        """
        await self._up.wait()
        if self._connection is None:
            raise ConnectionError(self.name)
        channel = self._connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
        try:
            with named_errors():
                async with asyncio.timeout(self.rules.call_timeout_s):
                    await _watch(channel, lost)
                yield channel
        finally:
            await _close(channel, self.rules.close_timeout_s)

    @asynccontextmanager
    async def lane(
        self, lost: asyncio.Event, *, confirms: bool
    ) -> AsyncIterator[tuple[AbstractChannel, Lane]]:
        """A channel as by `channel`, and the way of its messages; the library neither sends nor gets any."""
        await self._up.wait()
        transports = self._transports
        async with self.channel(lost, confirms=confirms) as channel:
            yield channel, transports.lane(cast("Channel", await channel.get_underlay_channel()))

    def drop(self) -> None:
        """Close the connection and open a new one; what waits for an answer on it ends unknown."""
        self._lost.set()

    async def _connect(self) -> None:
        """Connect, and return when the connection is lost."""
        connection = aio_pika.Connection(self._url)
        # Handed on as it is; given to the constructor it would be dropped, as whatever that does not know.
        self._transports = connection.kwargs["transport_factory"] = TurnTransports()
        lost = self._lost = asyncio.Event()
        connection.close_callbacks.add(lambda *_: lost.set())
        try:
            async with asyncio.timeout(self.rules.connect_timeout_s):
                await connection.connect()
            log.info("amqp.connected", extra={"connection": self.name})
            self._connection = connection
            self._up.set()
            self._tried.set()
            async with alongside(self._watch_blocking(connection)):
                await lost.wait()
        finally:
            self._up.clear()
            self._unblocked.set()
            self._tried.set()
            self._connection = None
            await _close(connection, self.rules.close_timeout_s)

    async def _watch_blocking(self, connection: aio_pika.Connection) -> None:
        """The library tells only those who ask; it answers at once unless the broker blocks us."""
        while connection.transport is not None:
            wire = connection.transport.connection
            try:
                async with asyncio.timeout(_ASK_S):
                    await wire.ready()
            except TimeoutError:
                log.warning("amqp.blocked", extra={"connection": self.name})
                self._unblocked.clear()
                await wire.ready()
                log.warning("amqp.unblocked", extra={"connection": self.name})
                self._unblocked.set()
            await self.clock.sleep(_LOOK_S)


async def keep_up(
    attempt: Callable[[], Awaitable[None]], name: str, rules: ConnectionRules, clock: Clock
) -> NoReturn:
    """Call `attempt` again and again; it returns when what it had opened was lost.

    What can't work as configured is tried again as well: an operator may be about to change it.
    """
    backoff = BackoffRules(first_s=rules.first_delay_s, longest_s=rules.longest_delay_s)
    chance = random.Random()  # noqa: S311 - spreads reconnects, hides nothing
    delays = pauses(backoff, chance)
    while True:
        try:
            await attempt()
        except ConfigurationError as error:
            log.error("amqp.misfit", extra={"connection": name, "reason": error.message})  # noqa: TRY400
        except LIBRARY_ERRORS as error:
            log.warning("amqp.attempt_failed", extra={"connection": name, "reason": repr(error)})
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            log.warning("amqp.attempt_failed", extra={"connection": name, "reason": "closed meanwhile"})
        else:
            log.warning("amqp.lost", extra={"connection": name})
            delays = pauses(backoff, chance)
        if is_cancelled():
            # The library had something to close just then, and let nobody know.
            raise asyncio.CancelledError
        await clock.sleep(next(delays))


def is_cancelled() -> bool:
    """Whether someone asked the current task to end.

    The library ends its pending calls with CancelledError when a channel closes; that is a lost
    connection and no reason to end the task that waited.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _watch(channel: AbstractChannel, lost: asyncio.Event) -> None:
    channel.close_callbacks.add(lambda *_: lost.set())
    await channel.initialize()
    wire = await channel.get_underlay_channel()
    wire.on_consumer_cancel_callbacks.add(lambda _: lost.set())


async def _close(resource: aio_pika.Connection | AbstractChannel, timeout_s: float) -> None:
    """A broker under an alarm does not answer a close; do not wait for it for ever."""
    with suppress(*LIBRARY_ERRORS):
        async with asyncio.timeout(timeout_s):
            await resource.close()
