"""Messages pass the library by.

The library keeps connections and channels: it opens, declares, consumes, closes, beats. A message it would
take through queues, tasks and a table of types for each field, which was a good part of what a request
costs. So, of channels with a lane, messages and their confirms are taken out of the stream before the
library reads it, and are written beside what it writes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from aiormq import Channel, ChannelInvalidStateError, spec

from dispatcher.amqp.encoding import BODY, FRAME_END, HEAD, HEADER, HEARTBEAT, METHOD, method_id

DELIVER, RETURN = method_id(spec.Basic.Deliver), method_id(spec.Basic.Return)
ACK, NACK = method_id(spec.Basic.Ack), method_id(spec.Basic.Nack)
_CLOSES = (method_id(spec.Channel.Close), method_id(spec.Channel.CloseOk))
_KINDS = (METHOD, HEADER, BODY, HEARTBEAT)
_AROUND = HEAD.size + len(FRAME_END)
"""Bytes of a frame beside its payload."""
_BODY_SIZE = slice(4, 12)
"""Where a content header says how many bytes the body has."""


class Arrival(NamedTuple):
    """What the broker sent: the payload of a method frame, and the content of DELIVER and RETURN."""

    method: bytes
    header: bytes = b""
    body: bytes = b""

    @property
    def name(self) -> bytes:
        """One of DELIVER, RETURN, ACK and NACK."""
        return self.method[:4]


class Lane:
    """The way of one channel's messages.

    It ends as the channel's close passes by: that is before the library answers it. A frame that is
    written after the answer, or after a close of ours, would end the whole connection.
    """

    def __init__(self, channel: Channel, write: Callable[[bytes], None]) -> None:
        self.channel = channel
        """For all that is no message."""
        self._write = write
        self._on_arrival: Callable[[Arrival], None] = ignore
        self._has_ended = False
        self._method, self._header, self._body, self._missing = b"", b"", list[bytes](), 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be written any more."""
        return self._has_ended or self.channel.is_closed

    def listen(self, on_arrival: Callable[[Arrival], None]) -> None:
        """Have all that arrives from now on told to `on_arrival`, and no longer to whom it was told before.

        It is called as the socket is read: what it raises ends the connection.
        """
        self._on_arrival = on_arrival

    def write(self, frames: bytes) -> None:
        """Write whole frames, after all that was written before; `ChannelInvalidStateError` after the end."""
        if self.has_ended:
            raise ChannelInvalidStateError(f"{self.channel!r} closed")
        self._write(frames)

    def end(self) -> None:
        """Write nothing any more, since the channel is about to be closed."""
        self._has_ended = True

    @contextmanager
    def call(self) -> Iterator[None]:
        """Call the library on the channel: it closes it where a call fails or is cancelled."""
        try:
            yield
        except BaseException:
            self.end()
            raise

    def take(self, kind: int, payload: bytes) -> bool:
        """Take a frame of the channel; False for one that is the library's."""
        if kind == METHOD:
            return self._take_method(payload)
        if not self._method:
            return False
        if kind == HEADER:
            self._header, self._missing = payload, int.from_bytes(payload[_BODY_SIZE])
        else:
            self._body.append(payload)
            self._missing -= len(payload)
        if self._missing <= 0:
            self._take_message()
        return True

    def _take_method(self, payload: bytes) -> bool:
        name = payload[:4]
        if name in (DELIVER, RETURN):
            self._method = payload
        elif name in (ACK, NACK):
            self._on_arrival(Arrival(payload))
        else:
            if name in _CLOSES:
                self._has_ended, self._method = True, b""
            return False
        return True

    def _take_message(self) -> None:
        arrived = Arrival(self._method, self._header, b"".join(self._body))
        self._method, self._body = b"", []
        self._on_arrival(arrived)


class Sorter:
    """Takes what belongs to lanes out of what is read from one connection."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}
        self._rest = b""
        self._is_amqp = True

    @property
    def has_lanes(self) -> bool:
        """Whether anything is taken out."""
        return bool(self._lanes)

    def add(self, lane: Lane) -> None:
        """From now on the frames of the lane's channel are offered to it."""
        self._lanes[lane.channel.number] = lane

    def feed(self, data: bytes) -> bytes:
        """What of it, and of the incomplete frame before it, is the library's: whole frames.

        From where it is not AMQP all is passed on: the library knows what to say of it.
        """
        data, passed, at = self._rest + data, list[bytes](), 0
        while self._is_amqp and len(data) - at >= _AROUND:
            kind, number, size = HEAD.unpack_from(data, at)
            after = at + _AROUND + size
            self._is_amqp = kind in _KINDS and data[after - 1 : after] in (FRAME_END, b"")
            if not self._is_amqp or after > len(data):
                break
            lane = self._lanes.get(number)
            if lane is None or not lane.take(kind, data[at + HEAD.size : after - 1]):
                passed.append(data[at:after])
            at = after
        self._rest = data[at:]
        if not self._is_amqp:
            passed.append(self.end())
        return b"".join(passed)

    def end(self) -> bytes:
        """What is left at the end of the stream: an incomplete frame."""
        rest, self._rest = self._rest, b""
        return rest


def ignore(_: Arrival) -> None:
    """For what nobody waits for."""
