"""Writes messages to one of the library's channels and waits for their confirms.

The library's own `basic_publish` does the same at more than twice the price: it makes everything anew
for each message, inside three context managers. Its channel still does the rest: what it needs to match
confirms and returned messages is noted as `basic_publish` notes it.
"""

import asyncio
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from aiormq import Channel, ChannelInvalidStateError, spec
from aiormq.abc import ChannelFrame
from pamqp.body import ContentBody
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from dispatcher.amqp.outcomes import LIBRARY_ERRORS

_KEYS = 1024
"""Encoded `basic.publish` methods that are kept; there is about one per agent."""
_NOTHING = ChannelFrame(payload=b"", should_close=False)


class Address(NamedTuple):
    """Where a message goes; a `mandatory` one is returned when no queue takes it."""

    exchange: str
    key: str
    mandatory: bool


class Confirm(asyncio.Future[object]):
    """The broker's answer to one message; what comes after its end is too late, and no error.

    The library ends it as it reads. In the turn in which its publish was cancelled or given up that
    would raise, and a returned message would close the channel for all others.
    """

    def set_exception(self, exception: type | BaseException, /) -> None:
        """See `asyncio.Future`."""
        if not self.done():
            super().set_exception(exception)


class ConfirmedChannel:
    """A channel that confirms every message; nothing else may publish on it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._order = asyncio.Lock()
        # What the library looks at before it acknowledges: set where the broker's close is answered,
        # turns before `is_closed`. A frame written between them would end the whole connection. A test
        # notices a release without it; meanwhile `is_closed` has to do.
        self._is_ending: asyncio.Event = vars(channel).get("_Channel__close_event", asyncio.Event())
        channel.closing.add_done_callback(self._end)
        self._method = lru_cache(_KEYS)(partial(_method, channel.number))

    async def publish(
        self, address: Address, properties: spec.Basic.Properties, body: bytes, until: float
    ) -> None:
        """Write a message and return once it is confirmed.

        Raises what `basic_publish` would, and `TimeoutError` when there is no confirm `until` then, in
        the event loop's seconds. A returned message is known by its id: no id may be in flight twice.
        The socket is not waited for, since the confirm is.
        """
        header = marshal(ContentHeader(body_size=len(body), properties=properties), self._channel.number)
        frames = (self._method(address), header, *self._body(body))
        message_id = str(properties.message_id)
        async with self._order:
            await self._write(b"".join(frames), until)
            confirm = self._expect_confirm(message_id)
        timer = self._channel.loop.call_at(until, _give_up, confirm)
        try:
            await confirm
        finally:
            timer.cancel()
            self._channel.message_id_delivery_tag.pop(message_id, None)

    def _body(self, body: bytes) -> Sequence[bytes]:
        most, number = self._channel.max_content_size, self._channel.number
        return [marshal(ContentBody(body[at : at + most]), number) for at in range(0, len(body), most)]

    async def _write(self, payload: bytes, until: float) -> None:
        """Cancelled, it has written nothing."""
        self._check_open()
        queue = self._channel.write_queue
        while queue.full():
            # What waits for room is empty: by then the channel may be ending.
            async with asyncio.timeout_at(until):
                await queue.put(_NOTHING)
            self._check_open()
        queue.put_nowait(ChannelFrame(payload=payload, should_close=False))

    def _check_open(self) -> None:
        if self._is_ending.is_set() or self._channel.is_closed:
            raise ChannelInvalidStateError(f"{self._channel!r} closed")

    def _expect_confirm(self, message_id: str) -> Confirm:
        """The broker counts the messages of a channel, and so do both sides of a confirm."""
        channel = self._channel
        channel.delivery_tag += 1
        confirm = channel.confirmations[channel.delivery_tag] = Confirm(loop=channel.loop)
        channel.message_id_delivery_tag[message_id] = channel.delivery_tag
        return confirm

    def _end(self, closing: asyncio.Future[Any]) -> None:
        """Nothing more is confirmed.

        The library's reason may be a bare `Exception`, or CancelledError for those that nobody cancelled.
        """
        reason = None if closing.cancelled() else closing.exception()
        for confirm in list(self._channel.confirmations.values()):
            if isinstance(confirm, Confirm):
                confirm.set_exception(_named(reason, f"{self._channel!r} closed"))


def _named(reason: BaseException | None, text: str) -> BaseException:
    return reason if isinstance(reason, LIBRARY_ERRORS) else ChannelInvalidStateError(text)


def _method(channel: int, address: Address) -> bytes:
    exchange, key, mandatory = address
    return marshal(spec.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory), channel)


def _give_up(confirm: Confirm) -> None:
    confirm.set_exception(TimeoutError())
