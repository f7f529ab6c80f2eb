"""A real channel of the library over a connection that a test plays the broker of."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import aiormq
from aiormq.abc import ChannelFrame
from aiormq.base import Base
from pamqp import commands, frame, header

from dispatcher.amqp.confirmed import ConfirmedChannel
from dispatcher.amqp.lane import Lane, Sorter

FRAME_BYTES = 1_000
"""The largest frame that this broker takes."""
CHANNEL = 1

Sent = tuple[object, ...]
"""The frames of one write as the broker reads them; of a message: method, header, parts of the body."""


def read(data: bytes) -> Sent:
    """The frames in it."""
    frames = list[object]()
    while data:
        taken, _, one = frame.unmarshal(data)
        frames.append(one)
        data = data[taken:]
    return tuple(frames)


def bare_lane(write: Callable[[bytes], None]) -> Lane:
    """Of a channel that has nothing but a number."""
    channel = SimpleNamespace(number=CHANNEL, is_closed=False)
    return Lane(cast("aiormq.Channel", channel), write)


class Written(asyncio.Queue[ChannelFrame]):
    """Hands over what the library writes."""

    def __init__(self, on_write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._on_write = on_write

    def put_nowait(self, item: ChannelFrame) -> None:
        """See `asyncio.Queue`."""
        self._on_write(item.payload)


class Broker(Base):
    """The connection that the channel knows; `sent` has what was written on it.

    `reply` is asked for the frames that answer the write with that number; none leaves a message unconfirmed.
    """

    publisher_confirms = True
    is_opened = False
    connection_tune = SimpleNamespace(frame_max=FRAME_BYTES, heartbeat=10)

    def __init__(self, reply: Callable[[int, Sent], tuple[object, ...]] | None = None) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.sent: list[Sent] = []
        self.write_queue = Written(self._take)
        self.reply = reply or confirm
        self.channel = aiormq.Channel(self, CHANNEL)  # type: ignore[arg-type] # all of a connection that it needs
        self.lane = Lane(self.channel, self._take)
        self._sorter = Sorter()
        self._sorter.add(self.lane)

    def __str__(self) -> str:
        return "broker"

    def confirmed(self) -> ConfirmedChannel:
        """The lane for messages that are to be confirmed."""
        return ConfirmedChannel(self.lane)

    def say(self, *frames: object) -> None:
        """Send frames: the library gets what is left of them."""
        data = b"".join(frame.marshal(one, CHANNEL) for one in frames)  # type: ignore[arg-type] # frames all
        for one in read(self._sorter.feed(data)):
            self.channel.frames.put_nowait((0, one))

    async def _on_close(self, exc: object = None) -> None:
        return

    def _take(self, data: bytes) -> None:
        self.sent.append(read(data))
        if answer := self.reply(len(self.sent), self.sent[-1]):
            asyncio.get_running_loop().call_soon(self.say, *answer)


def confirm(number: int, _: Sent) -> tuple[object, ...]:
    """Taken."""
    return (commands.Basic.Ack(delivery_tag=number),)


def refuse(number: int, _: Sent) -> tuple[object, ...]:
    """Not stored: the queue is full, say."""
    return (commands.Basic.Nack(delivery_tag=number),)


def send_back(number: int, sent: Sent) -> tuple[object, ...]:
    """No queue for it; the broker confirms that too."""
    _, head, *body = sent
    assert isinstance(head, header.ContentHeader)
    returned = commands.Basic.Return(312, "NO_ROUTE", "task", "order")
    return (returned, head, *body, commands.Basic.Ack(delivery_tag=number))


def say_nothing(_: int, __: Sent) -> tuple[object, ...]:
    """No answer."""
    return ()
