"""Confirmed publishing over one channel of a connection."""

import asyncio
from collections.abc import Sequence
from typing import NoReturn

from aio_pika.abc import AbstractChannel

from dispatcher.amqp.confirmed import Address, ConfirmedChannel
from dispatcher.amqp.connection import Connection, is_cancelled, keep_up
from dispatcher.amqp.declare import Exchange, declare_exchanges
from dispatcher.amqp.encoding import Properties
from dispatcher.amqp.outcomes import LIBRARY_ERRORS, delivery_error
from dispatcher.errors import (
    ConfigurationError,
    NotSentError,
    OutcomeUnknownError,
    RefusedError,
    TooLargeError,
)
from dispatcher.identifiers import new_id
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.records import Struct

_LONGEST_LIFETIME_MS = 2**32 - 1
"""RabbitMQ closes the channel of a message with a longer one."""


class Message(Struct, frozen=True, kw_only=True):
    """A body and how it is to be published; `mandatory` messages raise when no queue takes them.

    With `lifetime_ms` it is never delivered later than so many ms after `publish` was called: its
    queue dead-letters it. The broker's clock measures that, and ours what passes before (I10).
    `message_id` None takes a fresh one.
    """

    exchange: str
    key: str
    body: bytes
    kind: str
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    lifetime_ms: int | None = None
    persistent: bool = True
    mandatory: bool = True


class Publisher:
    """Publishes on one channel, which is opened again when it is lost.

    More channels split the broker's confirms: with four it needed a third more time for a message.
    When a publish got no answer and nothing else was confirmed for as long, the connection is
    dropped. Nothing is written while the broker says that it reads nothing: it would pile up here.
    """

    def __init__(self, connection: Connection, exchanges: Sequence[Exchange]) -> None:
        self._connection = connection
        self._exchanges = exchanges
        self._channel: ConfirmedChannel | None = None
        self._up = asyncio.Event()
        self._confirmed_at = 0.0
        self.misfit: str | None = None
        """Why nothing can be published as configured, in one sentence."""

    @property
    def is_up(self) -> bool:
        """Whether a publish would go out at once."""
        return self._up.is_set()

    async def up(self) -> None:
        """Return as soon as a publish would go out at once."""
        await self._up.wait()

    async def run(self) -> NoReturn:
        """Keep the channel open until cancelled."""
        await keep_up(
            self._open, f"{self._connection.name} publisher", self._connection.rules, self._connection.clock
        )

    async def publish(self, message: Message) -> None:
        """Return once the broker confirmed the message.

        Raises `UnroutableError`, `RefusedError` or `TooLargeError` when it surely was not stored, and
        `OutcomeUnknownError` when the broker did not answer in time or the connection broke;
        `NotSentError` where there was none to write to, or the broker read nothing. The
        code of `RefusedError` is `expired` where the message's lifetime ended while it waited.
        """
        begun = self._connection.clock.monotonic()
        if len(message.body) > MAX_FRAME_BYTES:
            raise TooLargeError(f"a frame of {len(message.body)} bytes; at most {MAX_FRAME_BYTES} are sent")
        until = asyncio.get_running_loop().time() + self._connection.rules.call_timeout_s
        try:
            if self._connection.is_blocked or not self._up.is_set():
                await self._writable(until)
            await self._publish(message, self._expiration(message, begun), until)
            self._confirmed_at = self._connection.clock.monotonic()
        except OverflowError as error:
            raise TooLargeError("a property of more than 255 bytes; nothing was written") from error
        except LIBRARY_ERRORS as error:
            if isinstance(error, TimeoutError):
                self._drop_if_silent()
            raise delivery_error(error, f"{message.exchange}/{message.key}") from error
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise OutcomeUnknownError(f"the channel closed: {message.exchange}/{message.key}") from error

    def _expiration(self, message: Message, begun: float) -> str | None:
        """The lifetime that is left, as the broker wants it."""
        if message.lifetime_ms is None:
            return None
        left_ms = message.lifetime_ms - round((self._connection.clock.monotonic() - begun) * 1000)
        if left_ms <= 0:
            raise RefusedError("the lifetime ended before the broker was reached", code="expired")
        return str(min(left_ms, _LONGEST_LIFETIME_MS))

    async def _writable(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._up.wait()
                if self._connection.is_blocked:
                    await self._connection.unblocked()
        except TimeoutError:
            raise NotSentError("the broker was not there to be written to") from None

    async def _publish(self, message: Message, expiration: str | None, until: float) -> None:
        if self._channel is None or self._channel.has_ended:
            raise NotSentError(f"the channel closed before anything was written: {self._connection.name}")
        address = Address(message.exchange, message.key, message.mandatory)
        await self._channel.publish(address, _properties(message, expiration), message.body, until)

    def _drop_if_silent(self) -> None:
        silent_s = self._connection.clock.monotonic() - self._confirmed_at
        if self._connection.is_blocked:
            return
        if self._up.is_set() and silent_s >= self._connection.rules.call_timeout_s:
            self._connection.drop()

    async def _declare(self, channel: AbstractChannel) -> None:
        self.misfit = None
        try:
            async with asyncio.timeout(self._connection.rules.call_timeout_s):
                await declare_exchanges(channel, self._exchanges)
        except ConfigurationError as error:
            self.misfit = error.message
            raise

    async def _open(self) -> None:
        lost = asyncio.Event()
        async with self._connection.lane(lost, confirms=True) as (channel, lane):
            await self._declare(channel)
            self._channel = ConfirmedChannel(lane)
            self._confirmed_at = self._connection.clock.monotonic()
            self._up.set()
            try:
                await lost.wait()
            finally:
                self._up.clear()
                self._channel = None


def _properties(message: Message, expiration: str | None) -> Properties:
    return Properties(
        message_id=message.message_id or new_id(),
        kind=message.kind,
        persistent=message.persistent,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        expiration=expiration,
    )
