import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp.commands import Basic, Channel
from pamqp.frame import marshal
from pamqp.header import ContentHeader

from dispatcher.amqp.encoding import METHOD
from dispatcher.amqp.lane import Arrival
from dispatcher.amqp.settle import Received, Settler, delivery_tag, settled_by
from dispatcher.clock import SystemClock
from dispatcher.protocol.link import Settlement
from tests.amqp.builders import CHANNEL, bare_lane, read

TAG = 7


class Told:
    """A broker on whose channel messages are settled."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self.lane = bare_lane(self._written.append)

    @property
    def told(self) -> list[str]:
        """All settlements in order, in words."""
        return [_words(one) for one in read(b"".join(self._written))]


def _words(one: object) -> str:
    match one:
        case Basic.Ack(delivery_tag=tag, multiple=multiple):
            return f"ack all to {tag}" if multiple else f"ack {tag}"
        case Basic.Reject(delivery_tag=tag, requeue=requeue):
            return f"reject {tag} requeue={requeue}"
    return repr(one)


def settler(broker: Told, *tags: int) -> Settler:
    """One with messages in hand."""
    made = Settler(broker.lane)
    for tag in tags:
        made.note(tag)
    return made


def payload(one: object) -> bytes:
    return marshal(one, CHANNEL)[7:-1]  # type: ignore[arg-type] # a frame


def arrival(properties: Basic.Properties | None = None) -> Arrival:
    method = Basic.Deliver(consumer_tag="c", delivery_tag=TAG, exchange="results", routing_key="q")
    return Arrival(payload(method), payload(ContentHeader(body_size=2, properties=properties)), b"{}")


def received(settler: Settler) -> Received:
    return Received(arrival(), delivery_tag(arrival()), settler)


async def told(broker: Told, tags: Sequence[int], *settled: tuple[int, Settlement]) -> list[str]:
    """What the broker is told when, of messages in hand, some are settled in one turn."""
    settling = settler(broker, *tags)
    for tag, settlement in settled:
        settling.settle(tag, settlement)
    settling.tell()
    return broker.told


async def test_what_a_message_says_of_itself_is_read_when_it_is_asked_for():
    properties = Basic.Properties(
        message_type="result",
        reply_to="here",
        correlation_id="7",
        headers={"x-first-death-reason": "expired"},
    )

    message = Received(arrival(properties), TAG, settler(Told()))

    assert (message.body, message.exchange, message.key) == (b"{}", "results", "q")
    assert (message.kind, message.reply_to, message.correlation_id) == ("result", "here", "7")
    assert (message.death, received(settler(Told())).death) == ("expired", "")


@pytest.mark.parametrize(
    ("settlement", "words"),
    [
        (Settlement.ACK, "ack 7"),
        (Settlement.REQUEUE, "reject 7 requeue=True"),
        (Settlement.DEAD, "reject 7 requeue=False"),
    ],
)
async def test_each_settlement_has_its_one_frame(settlement: Settlement, words: str):
    broker = Told()
    settling = settler(broker, TAG)

    await received(settling).settle(settlement)
    settling.tell()

    assert broker.told == [words]


async def test_only_the_first_of_concurrent_settlements_counts():
    broker = Told()
    settling = settler(broker, TAG)
    delivery = received(settling)

    await asyncio.gather(*(delivery.settle(settlement) for settlement in Settlement))
    settling.tell()

    assert broker.told == ["ack 7"]


async def test_on_a_channel_that_the_broker_closed_nothing_is_told():
    broker = Told()
    settling = settler(broker, TAG)
    message = received(settling)
    broker.lane.take(METHOD, payload(Channel.Close(406, "PRECONDITION_FAILED", 0, 0)))

    await message.settle(Settlement.ACK)
    settling.tell()

    assert (message.is_lost, broker.told) == (True, [])


async def test_a_handler_settles_as_it_was_decided():
    broker = Told()
    settling = settler(broker, TAG)

    async def decide(_: Received) -> Settlement:
        return Settlement.REQUEUE

    await settled_by(decide)(received(settling))
    settling.tell()

    assert broker.told == ["reject 7 requeue=True"]


async def test_a_raising_handler_leaves_nothing_unsettled():
    broker = Told()
    settling = settler(broker, TAG)

    async def decide(_: Received) -> Settlement:
        raise ValueError

    await settled_by(decide)(received(settling))
    settling.tell()

    assert broker.told == ["reject 7 requeue=False"]


ACK, REQUEUE, DEAD = Settlement.ACK, Settlement.REQUEUE, Settlement.DEAD


async def test_messages_at_the_front_are_acknowledged_in_one_frame():
    assert await told(Told(), [1, 2, 3], (2, ACK), (3, ACK), (1, ACK)) == ["ack all to 3"]


async def test_what_is_behind_a_message_in_hand_is_acknowledged_by_itself():
    frames = await told(Told(), [1, 2, 3, 4], (1, ACK), (3, ACK), (4, ACK))

    assert frames == ["ack 1", "ack 3", "ack 4"]


async def test_what_is_given_back_is_told_before_an_acknowledgement_that_would_cover_it():
    frames = await told(Told(), [1, 2, 3, 4], (1, ACK), (2, REQUEUE), (3, DEAD), (4, ACK))

    assert frames == ["reject 2 requeue=True", "reject 3 requeue=False", "ack all to 4"]


async def test_what_is_settled_in_one_turn_is_told_together():
    broker = Told()
    settling = settler(broker, 1, 2, 3)

    for tag in (1, 2):
        settling.settle(tag, ACK)
    at_once = broker.told
    await SystemClock().sleep(0)
    settling.settle(3, ACK)
    await SystemClock().sleep(0)

    assert (at_once, broker.told) == ([], ["ack all to 2", "ack 3"])


@given(st.lists(st.lists(st.tuples(st.integers(1, 12), st.sampled_from(Settlement)), max_size=6), max_size=6))
def test_every_message_is_told_what_was_decided_and_only_once(turns: list[list[tuple[int, Settlement]]]):
    decided = dict[int, Settlement]()

    async def settle_in_turns() -> list[str]:
        broker = Told()
        settling = settler(broker, *range(1, 13))
        for turn in turns:
            for tag, settlement in turn:
                if decided.setdefault(tag, settlement) is settlement and tag not in seen:
                    seen.add(tag)
                    settling.settle(tag, settlement)
            settling.tell()
        return broker.told

    seen = set[int]()
    told = asyncio.run(settle_in_turns())

    assert fates(told) == decided


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
