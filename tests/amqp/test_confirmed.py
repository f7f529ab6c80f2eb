"""What a publish puts on the wire, and what each answer of the broker makes of it."""

import asyncio
from dataclasses import dataclass, field

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

from dispatcher.amqp.confirmed import Address, ConfirmedChannel
from dispatcher.amqp.encoding import Properties
from dispatcher.clock import SystemClock
from tests.amqp.builders import FRAME_BYTES, Broker, Sent, confirm, refuse, say_nothing, send_back

ADDRESS = Address("task", "order", mandatory=True)
LIMIT_S = 5.0
SHORT_S = 0.02


@dataclass
class Publishing:
    """A broker, and the channel on which messages are published there."""

    broker: Broker
    channel: ConfirmedChannel = field(init=False)

    def __post_init__(self) -> None:
        self.channel = self.broker.confirmed()

    async def publish(self, body: bytes = b"{}", message_id: str = "m", limit_s: float = LIMIT_S) -> None:
        """Wait for the confirm as long as that."""
        until = asyncio.get_running_loop().time() + limit_s
        await self.channel.publish(ADDRESS, Properties(message_id, "task"), body, until)


async def publish(broker: Broker, body: bytes = b"{}") -> None:
    await Publishing(broker).publish(body)


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
    with pytest.raises(TimeoutError):
        await Publishing(Broker(say_nothing)).publish(limit_s=SHORT_S)


async def test_each_answer_reaches_the_message_that_it_is_for():
    def answer(number: int, sent: Sent) -> tuple[object, ...]:
        return refuse(number, sent) if number % 2 else ()

    publishing = Publishing(
        Broker(lambda number, sent: (*answer(number, sent), *answer(number - 1, sent)) if number > 1 else ())
    )
    outcomes = await asyncio.gather(
        *(publishing.publish(message_id=str(number), limit_s=SHORT_S) for number in range(4)),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [
        DeliveryError,
        TimeoutError,
        DeliveryError,
        TimeoutError,
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (commands.Basic.Ack(2, multiple=True), type(None)),
        (commands.Basic.Nack(2, multiple=True), DeliveryError),
    ],
    ids=["taken", "refused"],
)
async def test_one_answer_may_be_for_all_messages_up_to_one(answer: object, told: type):
    publishing = Publishing(Broker(lambda number, _: (answer,) if number == 3 else ()))

    outcomes = await asyncio.gather(
        *(publishing.publish(message_id=str(number), limit_s=SHORT_S) for number in range(3)),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [told, told, TimeoutError]


async def test_of_several_messages_the_one_that_comes_back_fails():
    def reply(number: int, sent: Sent) -> tuple[object, ...]:
        return send_back(number, sent) if number == 2 else confirm(number, sent)

    publishing = Publishing(Broker(reply))
    outcomes = await asyncio.gather(
        *(publishing.publish(message_id=str(number)) for number in range(3)), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [type(None), PublishError, type(None)]


async def test_an_answer_that_nobody_waits_for_is_no_error():
    broker = Broker(lambda number, sent: (*confirm(number + 7, sent), *confirm(number, sent)))

    await publish(broker)


async def test_a_message_that_nobody_published_comes_back_without_harm():
    stranger = commands.Basic.Return(312, "NO_ROUTE", "task", "order")
    broker = Broker(lambda number, sent: (stranger, ContentHeader(), *confirm(number, sent)))

    await publish(broker)


async def test_what_is_delivered_on_it_is_nobodys():
    delivered = commands.Basic.Deliver("c", 1, exchange="", routing_key="q")
    broker = Broker(lambda number, sent: (delivered, ContentHeader(), *confirm(number, sent)))

    await publish(broker)


async def test_nothing_is_written_on_a_closed_channel():
    broker = Broker()
    publishing = Publishing(broker)
    await broker.channel.close()

    with pytest.raises(ChannelInvalidStateError):
        await publishing.publish()

    assert broker.sent == []


async def test_nothing_is_written_once_the_broker_said_that_the_channel_closes():
    broker = Broker(say_nothing)
    publishing = Publishing(broker)
    broker.say(commands.Channel.Close(406, "PRECONDITION_FAILED", 0, 0))

    with pytest.raises(ChannelInvalidStateError):
        await publishing.publish()
    async with asyncio.timeout(LIMIT_S):
        while not broker.channel.is_closed:
            await SystemClock().sleep(0)

    assert [type(frame) for frame, *_ in broker.sent] == [commands.Channel.CloseOk]


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
    broker.say(*send_back(len(broker.sent), broker.sent[-1]))


async def test_a_message_that_comes_back_as_its_publish_is_cancelled_leaves_the_channel_open():
    publishing = Publishing(Broker(say_nothing))

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(publishing.publish())
        await asyncio.wait([waiting], timeout=SHORT_S)
        waiting.cancel()
        come_back(publishing.broker)

    assert waiting.cancelled()
    await goes_on(publishing)


async def test_a_message_that_comes_back_as_it_is_given_up_leaves_the_channel_open():
    publishing = Publishing(Broker(say_nothing))
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time(), come_back, publishing.broker)

    with pytest.raises(TimeoutError):
        await publishing.publish(limit_s=-1)

    await goes_on(publishing)


async def goes_on(publishing: Publishing) -> None:
    """The channel confirms as before."""
    publishing.broker.reply = confirm
    await publishing.publish(message_id="next")
    assert not publishing.broker.channel.is_closed
