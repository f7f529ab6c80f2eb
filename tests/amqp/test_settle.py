import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest
from aio_pika.exceptions import ChannelInvalidStateError
from aiormq.abc import AbstractChannel, DeliveredMessage
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from dispatcher.amqp.settle import Received, settled_by
from dispatcher.protocol.link import Settlement

TAG = 7


@dataclass
class Wire:
    """What the broker would be told; `error` is raised instead when given."""

    error: Exception | None = None
    told: list[str] = field(default_factory=list)

    async def basic_ack(self, tag: int, *, wait: bool) -> None:
        self._tell(f"ack {tag}")

    async def basic_reject(self, tag: int, *, requeue: bool, wait: bool) -> None:
        self._tell(f"reject {tag} requeue={requeue}")

    def _tell(self, what: str) -> None:
        if self.error:
            raise self.error
        self.told.append(what)


def received(wire: Wire) -> Received:
    delivery = Basic.Deliver(consumer_tag="c", delivery_tag=TAG, exchange="", routing_key="q")
    channel = cast("AbstractChannel", wire)
    return Received(DeliveredMessage(delivery=delivery, header=ContentHeader(), body=b"{}", channel=channel))


@pytest.mark.parametrize(
    ("settlement", "told"),
    [
        (Settlement.ACK, "ack 7"),
        (Settlement.REQUEUE, "reject 7 requeue=True"),
        (Settlement.DEAD, "reject 7 requeue=False"),
    ],
)
async def test_each_settlement_has_its_one_frame(settlement: Settlement, told: str):
    wire = Wire()

    await received(wire).settle(settlement)

    assert wire.told == [told]


async def test_only_the_first_of_concurrent_settlements_counts():
    wire = Wire()
    delivery = received(wire)

    await asyncio.gather(*(delivery.settle(settlement) for settlement in Settlement))

    assert wire.told == ["ack 7"]


async def test_a_dead_channel_is_no_error():
    await received(Wire(error=ChannelInvalidStateError("closed"))).settle(Settlement.ACK)


async def test_a_handler_settles_as_it_was_decided():
    wire = Wire()

    async def decide(_: Received) -> Settlement:
        return Settlement.REQUEUE

    await settled_by(decide)(received(wire))

    assert wire.told == ["reject 7 requeue=True"]


async def test_a_raising_handler_leaves_nothing_unsettled():
    wire = Wire()

    async def decide(_: Received) -> Settlement:
        raise ValueError

    await settled_by(decide)(received(wire))

    assert wire.told == ["reject 7 requeue=False"]
