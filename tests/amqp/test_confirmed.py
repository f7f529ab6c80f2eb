"""What a publish puts on the wire, and what each answer of the broker makes of it."""

import asyncio

import pytest
from aio_pika.exceptions import (
    ChannelInvalidStateError,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from dispatcher.amqp.confirmed import Address
from dispatcher.clock import SystemClock
from tests.amqp.builders import FRAME_BYTES, Broker, Sent, confirm, refuse, say_nothing, send_back

ADDRESS = Address("task", "order", mandatory=True)
LIMIT_S = 5.0
SHORT_S = 0.02


async def publish(
    broker: Broker, body: bytes = b"{}", message_id: str = "m", limit_s: float = LIMIT_S
) -> None:
    until = asyncio.get_running_loop().time() + limit_s
    properties = commands.Basic.Properties(message_id=message_id)
    await broker.confirmed.publish(ADDRESS, properties, body, until)


def text(sent: Sent) -> bytes:
    return b"".join(part.value for part in sent if isinstance(part, ContentBody))


async def test_a_message_goes_to_its_exchange_and_key_and_ends_with_its_confirm():
    broker = Broker()

    await publish(broker, b"hello")

    ((method, head, *_),) = broker.sent
    assert isinstance(method, commands.Basic.Publish)
    assert isinstance(head, ContentHeader)
    assert (method.exchange, method.routing_key, method.mandatory) == ("task", "order", True)
    assert (head.body_size, head.properties.message_id, text(broker.sent[0])) == (5, "m", b"hello")


@given(size=st.integers(0, 5 * FRAME_BYTES))
def test_a_body_of_any_size_arrives_whole_in_frames_that_the_broker_takes(size: int):
    async def published() -> Sent:
        broker = Broker()
        await publish(broker, b"x" * size)
        return broker.sent[0]

    sent = asyncio.run(published())

    assert text(sent) == b"x" * size
    assert all(len(part) <= FRAME_BYTES - 8 for part in sent if isinstance(part, ContentBody))


async def test_a_message_without_a_queue_comes_back_as_an_error():
    with pytest.raises(PublishError):
        await publish(Broker(send_back))


async def test_a_refused_message_is_an_error():
    with pytest.raises(DeliveryError):
        await publish(Broker(refuse))


async def test_a_confirm_that_does_not_come_is_not_waited_for_longer():
    broker = Broker(say_nothing)

    with pytest.raises(TimeoutError):
        await publish(broker, limit_s=SHORT_S)

    assert broker.channel.message_id_delivery_tag == {}


async def test_each_answer_reaches_the_message_that_it_is_for():
    def answer(number: int, sent: Sent) -> tuple[object, ...]:
        return refuse(number, sent) if number % 2 else ()

    broker = Broker(
        lambda number, sent: (*answer(number, sent), *answer(number - 1, sent)) if number > 1 else ()
    )
    outcomes = await asyncio.gather(
        *(publish(broker, message_id=str(number), limit_s=SHORT_S) for number in range(4)),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [
        DeliveryError,
        TimeoutError,
        DeliveryError,
        TimeoutError,
    ]


async def test_nothing_is_written_on_a_closed_channel():
    broker = Broker()
    await broker.channel.close()

    with pytest.raises(ChannelInvalidStateError):
        await publish(broker)

    assert broker.sent == []


async def ending(broker: Broker) -> None:
    """Return when the library has answered the broker's close of the channel, and not ended it yet."""
    broker.channel.frames.put_nowait((0, commands.Channel.Close(406, "PRECONDITION_FAILED", 0, 0)))
    async with asyncio.timeout(LIMIT_S):
        while not broker.sent:
            await SystemClock().sleep(0)
    assert not broker.channel.is_closed


async def test_nothing_is_written_after_the_answer_to_the_brokers_close():
    broker = Broker(say_nothing)
    await ending(broker)

    with pytest.raises(ChannelInvalidStateError):
        await publish(broker)

    assert [type(frame) for frame, *_ in broker.sent] == [commands.Channel.CloseOk]


async def test_what_waited_for_room_is_not_written_after_the_answer_to_the_brokers_close():
    broker = Broker(say_nothing)
    broker.write_queue.has_room = False

    async with asyncio.timeout(LIMIT_S):
        waiting = asyncio.gather(publish(broker), return_exceptions=True)
        await asyncio.wait([waiting], timeout=SHORT_S)
        await ending(broker)
        broker.write_queue.make_room()
        (ended,) = await waiting

    assert isinstance(ended, ChannelInvalidStateError)
    assert [type(frame) for frames in broker.sent for frame in frames] == [commands.Channel.CloseOk]


async def test_what_waited_for_room_is_written_when_there_is_some():
    broker = Broker()
    broker.write_queue.has_room = False

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(publish(broker, b"hello"))
        await asyncio.wait([waiting], timeout=SHORT_S)
        assert broker.sent == []
        broker.write_queue.make_room()

    assert [text(sent) for sent in broker.sent if sent] == [b"hello"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ChannelPreconditionFailed("why"), ChannelPreconditionFailed),
        (asyncio.CancelledError, ChannelInvalidStateError),
        (None, ChannelInvalidStateError),
    ],
    ids=["with a reason", "by us", "with its connection, in good order"],
)
async def test_a_channel_that_closes_ends_what_waits_for_a_confirm(
    reason: Exception | type[BaseException] | None, told: type[Exception]
):
    broker = Broker(say_nothing)

    async with asyncio.timeout(LIMIT_S):
        waiting = asyncio.gather(publish(broker), return_exceptions=True)
        await asyncio.wait([waiting], timeout=SHORT_S)
        await broker.channel.close(reason)
        (ended,) = await waiting

    assert type(ended) is told


def come_back(broker: Broker) -> None:
    """The message that was sent last comes back: no queue takes it."""
    for frame in send_back(len(broker.sent), broker.sent[-1]):
        broker.channel.frames.put_nowait((0, frame))


async def test_a_message_that_comes_back_as_its_publish_is_cancelled_leaves_the_channel_open():
    broker = Broker(say_nothing)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(publish(broker))
        await asyncio.wait([waiting], timeout=SHORT_S)
        come_back(broker)
        waiting.cancel()

    assert waiting.cancelled()
    await goes_on(broker)


async def test_a_message_that_comes_back_as_it_is_given_up_leaves_the_channel_open():
    broker = Broker(say_nothing)
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time() - 2, come_back, broker)

    with pytest.raises(TimeoutError):
        await publish(broker, limit_s=-1)

    await goes_on(broker)


async def goes_on(broker: Broker) -> None:
    """The channel confirms as before."""
    broker.reply = confirm
    await publish(broker, message_id="next")
    assert not broker.channel.is_closed
