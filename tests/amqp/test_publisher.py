import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from pamqp.header import ContentHeader

from dispatcher import records
from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import DEFAULT_RULES, Connection
from dispatcher.amqp.lane import Lane
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.clock import SystemClock
from dispatcher.errors import NotSentError, RefusedError, TooLargeError
from tests.amqp.builders import Broker

LIMIT_S = 5


class HeldClock(SystemClock):
    """Shows the time that the test says."""

    def __init__(self) -> None:
        self.time_s = 1000.0

    def monotonic(self) -> float:
        return self.time_s


@dataclass
class LateConnection:
    """A connection that comes up when the test says."""

    broker: Broker = field(default_factory=Broker)
    clock: HeldClock = field(default_factory=HeldClock)
    may_open: asyncio.Event = field(default_factory=asyncio.Event)
    rules = DEFAULT_RULES
    name = "late"
    is_blocked = False

    @asynccontextmanager
    async def lane(self, *_: object, **__: object) -> AsyncIterator[tuple[None, Lane]]:
        await self.may_open.wait()
        yield None, self.broker.lane

    @property
    def expirations(self) -> list[str | None]:
        """Of what was published."""
        heads = [head for _, head, *_ in self.broker.sent if isinstance(head, ContentHeader)]
        return [head.properties.expiration for head in heads]


def message(lifetime_ms: int | None) -> Message:
    return Message(exchange="task", key="order", body=b"{}", kind="task", lifetime_ms=lifetime_ms)


def replace_kind(given: Message, kind: str) -> Message:
    return records.replace(given, kind=kind)


@dataclass
class HastyConnection(LateConnection):
    """One that is not waited for."""

    rules = replace(DEFAULT_RULES, call_timeout_s=0)


async def publish_late(connection: LateConnection, wanted: Message, *, late_s: float) -> None:
    """Publish; the connection comes up when `late_s` seconds passed on its clock."""
    publisher = Publisher(cast("Connection", connection), [])
    async with asyncio.timeout(LIMIT_S), alongside(publisher.run()), asyncio.TaskGroup() as group:
        group.create_task(publisher.publish(wanted))
        await SystemClock().sleep(0)
        connection.clock.time_s += late_s
        connection.may_open.set()


@pytest.mark.parametrize(
    ("lifetime_ms", "late_s", "expiration"),
    [
        (None, 10.0, None),
        (1000, 0.0, "1000"),
        (1000, 0.4, "600"),
        (2**40, 0.0, str(2**32 - 1)),
    ],
    ids=["without", "at once", "what is left", "no more than the broker takes"],
)
async def test_a_message_lives_in_the_broker_as_long_as_is_left_of_its_lifetime(
    lifetime_ms: int | None, late_s: float, expiration: str | None
):
    connection = LateConnection()

    await publish_late(connection, message(lifetime_ms), late_s=late_s)

    assert connection.expirations == [expiration]


async def test_a_message_whose_lifetime_ended_before_the_broker_was_there_is_refused():
    connection = LateConnection()

    with pytest.raises(ExceptionGroup) as failed:
        await publish_late(connection, message(1000), late_s=1.0)

    (error,) = failed.value.exceptions
    assert isinstance(error, RefusedError)
    assert (error.error_code, connection.expirations) == ("expired", [])


async def test_a_message_that_no_connection_came_up_for_was_surely_not_sent():
    connection = HastyConnection()
    publisher = Publisher(cast("Connection", connection), [])

    async with asyncio.timeout(LIMIT_S), alongside(publisher.run()):
        with pytest.raises(NotSentError):
            await publisher.publish(message(None))

    assert connection.expirations == []


@asynccontextmanager
async def publishing() -> AsyncIterator[tuple[LateConnection, Publisher]]:
    """A publisher whose channel is open."""
    connection = LateConnection()
    connection.may_open.set()
    publisher = Publisher(cast("Connection", connection), [])
    async with asyncio.timeout(LIMIT_S), alongside(publisher.run()):
        await publisher.up()
        yield connection, publisher


async def test_a_message_whose_channel_just_ended_was_surely_not_sent():
    async with publishing() as (connection, publisher):
        connection.broker.lane.end()
        with pytest.raises(NotSentError):
            await publisher.publish(message(None))

    assert connection.broker.sent == []


async def test_a_property_that_is_too_long_is_refused_and_the_next_message_goes_out():
    async with publishing() as (connection, publisher):
        with pytest.raises(TooLargeError):
            await publisher.publish(replace_kind(message(None), "k" * 256))
        await publisher.publish(message(None))

    assert len(connection.expirations) == 1
