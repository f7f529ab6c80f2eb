"""A real channel of the library over a connection that a test plays the broker of."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import aiormq
from aiormq.abc import ChannelFrame
from aiormq.base import Base
from pamqp import commands, frame, header

from dispatcher.amqp.confirmed import ConfirmedChannel

FRAME_BYTES = 1_000
"""The largest frame that this broker takes."""

Sent = tuple[object, ...]
"""The frames of one message as the broker reads them: method, header, parts of the body."""


class Written(asyncio.Queue[ChannelFrame]):
    """Hands over each write as the frames it holds; without room it is full for all that wait for that."""

    def __init__(self, on_write: Callable[[Sent], None]) -> None:
        super().__init__()
        self._on_write = on_write
        self.has_room = True

    def full(self) -> bool:
        """See `asyncio.Queue`."""
        return not self.has_room

    def make_room(self) -> None:
        """Let those go on who wait for room."""
        self.has_room = True
        self._wakeup_next(self._putters)  # type: ignore[attr-defined] # as when somebody takes a frame

    def put_nowait(self, item: ChannelFrame) -> None:
        """See `asyncio.Queue`."""
        rest, frames = item.payload, list[object]()
        while rest:
            taken, _, read = frame.unmarshal(rest)
            frames.append(read)
            rest = rest[taken:]
        self._on_write(tuple(frames))


class Broker(Base):
    """The connection that the channel knows; `sent` has what was published on it.

    `reply` is asked for the frames that answer the message with that number; none leaves it unconfirmed.
    """

    publisher_confirms = True
    is_opened = False
    connection_tune = SimpleNamespace(frame_max=FRAME_BYTES, heartbeat=10)

    def __init__(self, reply: Callable[[int, Sent], tuple[object, ...]] | None = None) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self.sent: list[Sent] = []
        self.write_queue = Written(self._take)
        self.reply = reply or confirm
        self.channel = aiormq.Channel(self, 1)  # type: ignore[arg-type] # all of a connection that it needs
        self.confirmed = ConfirmedChannel(self.channel)

    def __str__(self) -> str:
        return "broker"

    async def _on_close(self, exc: object = None) -> None:
        return

    def _take(self, frames: Sent) -> None:
        self.sent.append(frames)
        for answer in self.reply(len(self.sent), frames):
            self.channel.frames.put_nowait((0, answer))


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
