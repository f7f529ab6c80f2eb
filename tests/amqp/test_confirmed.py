"""What a publish puts on the wire, and what each answer of the broker makes of it."""

import asyncio

import pytest
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError, PublishError
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from dispatcher.amqp.confirmed import Address
from tests.amqp.builders import FRAME_BYTES, Broker, Sent, refuse, say_nothing, send_back

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


async def test_a_channel_that_closes_ends_what_waits_for_a_confirm():
    broker = Broker(say_nothing)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(lost(broker))
        await asyncio.wait([waiting], timeout=SHORT_S)
        await broker.channel.close(ChannelInvalidStateError("lost"))

    assert waiting.result()


async def lost(broker: Broker) -> bool:
    """Whether a publish ended with the channel."""
    try:
        await publish(broker)
    except ChannelInvalidStateError:
        return True
    return False
