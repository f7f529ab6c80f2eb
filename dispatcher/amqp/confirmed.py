"""Writes messages to a channel and waits for their confirms."""

import asyncio
import struct
from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, NamedTuple

from aio_pika.exceptions import DeliveryError, PublishError
from aiormq import ChannelInvalidStateError, spec
from aiormq.abc import DeliveredMessage
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from dispatcher.amqp.encoding import Properties, content
from dispatcher.amqp.lane import ACK, DELIVER, RETURN, Arrival, Lane
from dispatcher.amqp.outcomes import LIBRARY_ERRORS

_KEYS = 1024
"""Encoded `basic.publish` methods that are kept; there is about one per agent."""
_CONFIRM = struct.Struct(">4sQB")
"""What `basic.ack` and `basic.nack` begin with: which method, delivery tag, bits."""
_MULTIPLE = 1


class Address(NamedTuple):
    """Where a message goes; a `mandatory` one is returned when no queue takes it."""

    exchange: str
    key: str
    mandatory: bool


Confirm = asyncio.Future[None]
"""The broker's answer to one message."""


class ConfirmedChannel:
    """A channel that confirms every message; nothing else may publish on it."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._channel = lane, lane.channel
        self._loop = asyncio.get_running_loop()
        self._sent = 0
        self._confirms: dict[int, Confirm] = {}
        self._tags: dict[str, int] = {}
        self._method = lru_cache(_KEYS)(partial(_method, lane.channel.number))
        lane.listen(self._on_arrival)
        lane.channel.closing.add_done_callback(self._end)

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be written any more."""
        return self._lane.has_ended

    async def publish(self, address: Address, properties: Properties, body: bytes, until: float) -> None:
        """Write a message and return once it is confirmed.

        Raises what the library's `basic_publish` would, and `TimeoutError` when there is no confirm `until`
        then, in the event loop's seconds. A returned message is known by its id: no id may be in flight
        twice. The socket is not waited for, since the confirm is.
        """
        rest = content(self._channel.number, properties, body, self._channel.max_content_size)
        self._lane.write(self._method(address) + rest)
        # The broker counts the messages of a channel, and so do both sides of a confirm.
        self._sent += 1
        tag = self._tags[properties.message_id] = self._sent
        confirm = self._confirms[tag] = self._loop.create_future()
        timer = self._loop.call_at(until, _answer, confirm, TimeoutError())
        try:
            await confirm
        finally:
            timer.cancel()
            self._confirms.pop(tag, None)
            self._tags.pop(properties.message_id, None)

    def _on_arrival(self, arrival: Arrival) -> None:
        if arrival.name == RETURN:
            self._on_return(arrival)
        elif arrival.name != DELIVER:
            self._on_confirm(arrival)

    def _on_confirm(self, arrival: Arrival) -> None:
        """Of a message that was returned or given up nobody waits for it."""
        _, tag, bits = _CONFIRM.unpack_from(arrival.method)
        error = None if arrival.name == ACK else DeliveryError(None, spec.Basic.Nack(delivery_tag=tag))
        for each in self._up_to(tag) if bits & _MULTIPLE else (tag,):
            if confirm := self._confirms.pop(each, None):
                _answer(confirm, error)

    def _up_to(self, tag: int) -> Iterable[int]:
        return list(takewhile(lambda each: each <= tag, self._confirms))

    def _on_return(self, arrival: Arrival) -> None:
        returned, head = spec.Basic.Return(), ContentHeader()
        returned.unmarshal(arrival.method[4:])
        head.unmarshal(arrival.header)
        tag = self._tags.get(str(head.properties.message_id))
        if tag is not None and (confirm := self._confirms.pop(tag, None)):
            message = DeliveredMessage(
                delivery=returned, header=head, body=arrival.body, channel=self._channel
            )
            _answer(confirm, PublishError(message, returned))

    def _end(self, closing: asyncio.Future[Any]) -> None:
        """Nothing more is confirmed.

        The library's reason may be a bare `Exception`, or CancelledError for those that nobody cancelled.
        """
        reason = None if closing.cancelled() else closing.exception()
        for confirm in self._confirms.values():
            _answer(confirm, _named(reason, f"{self._channel!r} closed"))


def _answer(confirm: Confirm, error: BaseException | None) -> None:
    """In the turn in which its publish was cancelled or given up there is nobody to answer."""
    if confirm.done():
        return
    if error is None:
        confirm.set_result(None)
    else:
        confirm.set_exception(error)


def _named(reason: BaseException | None, text: str) -> BaseException:
    return reason if isinstance(reason, LIBRARY_ERRORS) else ChannelInvalidStateError(text)


def _method(channel: int, address: Address) -> bytes:
    exchange, key, mandatory = address
    return marshal(spec.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory), channel)
