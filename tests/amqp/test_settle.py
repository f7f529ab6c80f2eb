import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
from aio_pika.exceptions import ChannelInvalidStateError
from aiormq.abc import AbstractChannel, DeliveredMessage
from hypothesis import given
from hypothesis import strategies as st
from pamqp.commands import Basic
from pamqp.header import ContentHeader

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.settle import Received, Settler, settled_by
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement

TAG = 7
LIMIT_S = 5


@dataclass
class Wire:
    """What the broker would be told; `error` is raised instead when given, and it waits for `open`."""

    error: Exception | None = None
    told: list[str] = field(default_factory=list)
    open: asyncio.Event | None = None

    async def basic_ack(self, tag: int, *, multiple: bool = False, wait: bool) -> None:
        await self._tell(f"ack all to {tag}" if multiple else f"ack {tag}")

    async def basic_reject(self, tag: int, *, requeue: bool, wait: bool) -> None:
        await self._tell(f"reject {tag} requeue={requeue}")

    async def _tell(self, what: str) -> None:
        if self.open:
            await self.open.wait()
        if self.error:
            raise self.error
        self.told.append(what)


def settler(wire: Wire, *tags: int) -> Settler:
    """One with messages in hand."""
    made = Settler(cast("AbstractChannel", wire))
    for tag in tags:
        made.note(tag)
    return made


def received(settler: Settler) -> Received:
    delivery = Basic.Deliver(consumer_tag="c", delivery_tag=TAG, exchange="", routing_key="q")
    message = DeliveredMessage(
        delivery=delivery, header=ContentHeader(), body=b"{}", channel=cast("AbstractChannel", Wire())
    )
    return Received(message, settler)


async def told(wire: Wire, tags: Sequence[int], *settled: tuple[int, Settlement]) -> list[str]:
    """What the broker is told when, of messages in hand, some are settled in one turn."""
    settling = settler(wire, *tags)
    for tag, settlement in settled:
        settling.settle(tag, settlement)
    await settling.tell()
    return wire.told


@pytest.mark.parametrize(
    ("settlement", "frame"),
    [
        (Settlement.ACK, "ack 7"),
        (Settlement.REQUEUE, "reject 7 requeue=True"),
        (Settlement.DEAD, "reject 7 requeue=False"),
    ],
)
async def test_each_settlement_has_its_one_frame(settlement: Settlement, frame: str):
    wire = Wire()
    settling = settler(wire, TAG)

    await received(settling).settle(settlement)
    await settling.tell()

    assert wire.told == [frame]


async def test_only_the_first_of_concurrent_settlements_counts():
    wire = Wire()
    settling = settler(wire, TAG)
    delivery = received(settling)

    await asyncio.gather(*(delivery.settle(settlement) for settlement in Settlement))
    await settling.tell()

    assert wire.told == ["ack 7"]


async def test_a_dead_channel_is_no_error():
    wire = Wire(error=ChannelInvalidStateError("closed"))

    assert await told(wire, [TAG], (TAG, Settlement.ACK)) == []


async def test_a_handler_settles_as_it_was_decided():
    wire = Wire()
    settling = settler(wire, TAG)

    async def decide(_: Received) -> Settlement:
        return Settlement.REQUEUE

    await settled_by(decide)(received(settling))
    await settling.tell()

    assert wire.told == ["reject 7 requeue=True"]


async def test_a_raising_handler_leaves_nothing_unsettled():
    wire = Wire()
    settling = settler(wire, TAG)

    async def decide(_: Received) -> Settlement:
        raise ValueError

    await settled_by(decide)(received(settling))
    await settling.tell()

    assert wire.told == ["reject 7 requeue=False"]


ACK, REQUEUE, DEAD = Settlement.ACK, Settlement.REQUEUE, Settlement.DEAD


async def test_messages_at_the_front_are_acknowledged_in_one_frame():
    assert await told(Wire(), [1, 2, 3], (2, ACK), (3, ACK), (1, ACK)) == ["ack all to 3"]


async def test_what_is_behind_a_message_in_hand_is_acknowledged_by_itself():
    frames = await told(Wire(), [1, 2, 3, 4], (1, ACK), (3, ACK), (4, ACK))

    assert frames == ["ack 1", "ack 3", "ack 4"]


async def test_what_is_given_back_is_told_before_an_acknowledgement_that_would_cover_it():
    frames = await told(Wire(), [1, 2, 3, 4], (1, ACK), (2, REQUEUE), (3, DEAD), (4, ACK))

    assert frames == ["reject 2 requeue=True", "reject 3 requeue=False", "ack all to 4"]


async def test_what_is_settled_in_one_turn_is_told_together():
    wire = Wire()
    settling = settler(wire, 1, 2, 3)

    async with asyncio.timeout(LIMIT_S), alongside(settling.run()):
        for tag in (1, 2):
            settling.settle(tag, ACK)
        await SystemClock().sleep(0)
        settling.settle(3, ACK)
        await SystemClock().sleep(0)

    assert wire.told == ["ack all to 2", "ack 3"]


async def test_a_frame_that_was_held_up_is_told_before_one_that_would_cover_it():
    gate = asyncio.Event()
    wire = Wire(open=gate)
    settling = settler(wire, 1, 2, 3)
    settling.settle(1, DEAD)

    async with asyncio.timeout(LIMIT_S):
        async with alongside(settling.run()):
            await SystemClock().sleep(0)
            settling.settle(2, ACK)
            settling.settle(3, ACK)
        gate.set()
        await settling.tell()

    assert wire.told == ["reject 1 requeue=False", "ack all to 3"]


async def test_what_is_decided_while_the_last_is_told_is_told_too():
    gate = asyncio.Event()
    wire = Wire(open=gate)
    settling = settler(wire, 1, 2, 3)
    settling.settle(2, ACK)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(settling.tell())
        await SystemClock().sleep(0)
        settling.settle(1, REQUEUE)
        settling.settle(3, ACK)
        gate.set()

    assert wire.told == ["ack 2", "reject 1 requeue=True", "ack 3"]


@given(st.lists(st.lists(st.tuples(st.integers(1, 12), st.sampled_from(Settlement)), max_size=6), max_size=6))
def test_every_message_is_told_what_was_decided_and_only_once(turns: list[list[tuple[int, Settlement]]]):
    wire, decided = Wire(), dict[int, Settlement]()

    async def settle_in_turns() -> None:
        settling = settler(wire, *range(1, 13))
        for turn in turns:
            for tag, settlement in turn:
                if decided.setdefault(tag, settlement) is settlement and tag not in seen:
                    seen.add(tag)
                    settling.settle(tag, settlement)
            await settling.tell()

    seen = set[int]()
    asyncio.run(settle_in_turns())

    assert fates(wire.told) == decided


def fates(frames: Sequence[str]) -> dict[int, Settlement]:
    """What a broker makes of the frames; raises for a message that it is told twice of."""
    unsettled, fate = set(range(1, 13)), dict[int, Settlement]()
    for frame in frames:
        words = frame.split()
        if frame.startswith("ack all"):
            tags = {tag for tag in unsettled if tag <= int(words[-1])}
            assert len(tags) > 1
        else:
            tags = {int(words[1])}
        unsettled_now = unsettled - tags
        assert len(unsettled) - len(unsettled_now) == len(tags)
        unsettled = unsettled_now
        kind = ACK if words[0] == "ack" else REQUEUE if "True" in frame else DEAD
        fate |= dict.fromkeys(tags, kind)
    return fate
