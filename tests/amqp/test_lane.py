"""Which of the bytes that a broker sends the library reads, and what lanes are told of the others."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame
from pamqp.body import ContentBody
from pamqp.header import ContentHeader, ProtocolHeader
from pamqp.heartbeat import Heartbeat

from dispatcher.amqp.lane import ACK, DELIVER, NACK, RETURN, Arrival, Sorter, ignore
from tests.amqp.builders import CHANNEL, bare_lane

OTHER = CHANNEL + 1
DELIVERED = commands.Basic.Deliver("c", 1, exchange="task", routing_key="order")
RETURNED = commands.Basic.Return(312, "NO_ROUTE", "task", "order")


def encoded(*frames: object, channel: int = CHANNEL) -> bytes:
    return b"".join(frame.marshal(one, channel) for one in frames)  # type: ignore[arg-type] # frames all


def message(method: object, *parts: bytes, channel: int = CHANNEL) -> bytes:
    head = ContentHeader(body_size=sum(map(len, parts)))
    return encoded(method, head, *map(ContentBody, parts), channel=channel)


class Reading:
    """A connection with one lane: what the lane is told and what the library gets."""

    def __init__(self) -> None:
        self.lane = bare_lane(list[bytes]().append)
        self.arrived: list[Arrival] = []
        self.sorter = Sorter()
        self.sorter.add(self.lane)
        self.lane.listen(self.arrived.append)

    def feed(self, *pieces: bytes) -> bytes:
        return b"".join(map(self.sorter.feed, pieces))

    @property
    def told(self) -> list[tuple[bytes, bytes]]:
        return [(arrival.name, arrival.body) for arrival in self.arrived]


def cut(data: bytes, at: Sequence[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[a:b] for a, b in pairwise(borders)]


def test_messages_and_their_confirms_are_the_lanes():
    reading = Reading()

    rest = reading.feed(
        message(DELIVERED, b"one"),
        message(RETURNED, b"two"),
        encoded(commands.Basic.Ack(1)),
        encoded(commands.Basic.Nack(2)),
    )

    assert reading.told == [(DELIVER, b"one"), (RETURN, b"two"), (ACK, b""), (NACK, b"")]
    assert rest == b""


@pytest.mark.parametrize("parts", [(), (b"one",), (b"one ", b"after ", b"another")])
def test_a_body_comes_whole_whatever_its_frames(parts: tuple[bytes, ...]):
    reading = Reading()

    rest = reading.feed(message(DELIVERED, *parts), message(DELIVERED, b"next"))

    assert [arrival.body for arrival in reading.arrived] == [b"".join(parts), b"next"]
    assert rest == b""


OF_THE_LIBRARY = (
    encoded(commands.Channel.OpenOk()),
    encoded(commands.Basic.ConsumeOk("c")),
    encoded(commands.Basic.Cancel("c")),
    message(commands.Basic.GetOk(1, exchange="task", routing_key="order", message_count=0), b"got"),
    message(DELIVERED, b"on a channel without a lane", channel=OTHER),
    encoded(commands.Basic.Ack(1), channel=OTHER),
    encoded(commands.Connection.Blocked("no memory"), channel=0),
    Heartbeat().marshal(),
)
OF_THE_LANE = (message(DELIVERED, b"one ", b"two"), message(DELIVERED), encoded(commands.Basic.Ack(1)))


@given(
    frames=st.lists(st.sampled_from(OF_THE_LIBRARY + OF_THE_LANE), max_size=8),
    at=st.lists(st.integers(0, 10_000), max_size=20),
)
def test_however_the_bytes_come_all_of_it_arrives_once_and_in_order(frames: list[bytes], at: list[int]):
    reading = Reading()

    library = reading.feed(*cut(b"".join(frames), at))

    assert library == b"".join(one for one in frames if one in OF_THE_LIBRARY)
    assert len(reading.arrived) == sum(one in OF_THE_LANE for one in frames)


@pytest.mark.parametrize(
    "close", [commands.Channel.Close(406, "PRECONDITION_FAILED", 0, 0), commands.Channel.CloseOk()]
)
def test_a_lane_ends_as_the_close_of_its_channel_passes_by(close: object):
    reading = Reading()

    assert reading.feed(encoded(close)) == encoded(close)
    assert reading.lane.has_ended


def test_a_call_that_fails_ends_the_lane_for_the_library_closes_the_channel():
    lane = Reading().lane
    with lane.call():
        pass
    is_open = not lane.has_ended

    with pytest.raises(TimeoutError), lane.call():
        raise TimeoutError

    assert (is_open, lane.has_ended) == (True, True)


def test_a_message_that_ended_with_its_channel_leaves_nothing_to_the_next_of_that_number():
    reading = Reading()
    got = message(commands.Basic.GetOk(1, exchange="", routing_key="q", message_count=0), b"got")

    reading.feed(encoded(DELIVERED), encoded(commands.Channel.CloseOk()))

    assert (reading.feed(got), reading.arrived) == (got, [])


def test_what_nobody_listens_to_any_more_does_not_reach_the_library():
    reading = Reading()
    reading.lane.listen(ignore)

    assert (reading.feed(message(DELIVERED, b"late")), reading.arrived) == (b"", [])


@pytest.mark.parametrize(
    "strange",
    [ProtocolHeader().marshal(), b"HTTP/1.1 400 Bad Request", encoded(commands.Basic.Ack(1))[:-1] + b"?"],
    ids=["another version", "another protocol", "a frame without its end"],
)
def test_what_is_not_amqp_is_the_librarys_from_there_on(strange: bytes):
    reading = Reading()
    good = encoded(commands.Basic.Ack(1))

    assert reading.feed(good, strange, good) == strange + good
    assert len(reading.arrived) == 1


def test_an_incomplete_frame_is_left_at_the_end():
    reading = Reading()
    half = encoded(commands.Basic.Ack(1))[:9]

    assert (reading.feed(half), reading.sorter.end(), reading.sorter.end()) == (b"", half, b"")
