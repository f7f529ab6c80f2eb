import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import ChannelInvalidStateError

from dispatcher.amqp.settle import Received, settled_by
from dispatcher.protocol.link import Settlement


@dataclass
class Message:
    """What the broker would be told; `error` is raised instead when given."""

    error: Exception | None = None
    told: list[str] = field(default_factory=list)

    async def ack(self) -> None:
        self._tell("ack")

    async def reject(self, *, requeue: bool) -> None:
        self._tell(f"reject requeue={requeue}")

    def _tell(self, what: str) -> None:
        if self.error:
            raise self.error
        self.told.append(what)


def received(message: Message) -> Received:
    return Received(cast("AbstractIncomingMessage", message))


@pytest.mark.parametrize(
    ("settlement", "told"),
    [
        (Settlement.ACK, "ack"),
        (Settlement.REQUEUE, "reject requeue=True"),
        (Settlement.DEAD, "reject requeue=False"),
    ],
)
async def test_each_settlement_has_its_one_frame(settlement: Settlement, told: str):
    message = Message()

    await received(message).settle(settlement)

    assert message.told == [told]


async def test_only_the_first_of_concurrent_settlements_counts():
    message = Message()
    delivery = received(message)

    await asyncio.gather(*(delivery.settle(settlement) for settlement in Settlement))

    assert message.told == ["ack"]


async def test_a_dead_channel_is_no_error():
    await received(Message(error=ChannelInvalidStateError("closed"))).settle(Settlement.ACK)


async def test_a_handler_settles_as_it_was_decided():
    message = Message()

    async def decide(_: Received) -> Settlement:
        return Settlement.REQUEUE

    await settled_by(decide)(received(message))

    assert message.told == ["reject requeue=True"]


async def test_a_raising_handler_leaves_nothing_unsettled():
    message = Message()

    async def decide(_: Received) -> Settlement:
        raise ValueError

    await settled_by(decide)(received(message))

    assert message.told == ["reject requeue=False"]
