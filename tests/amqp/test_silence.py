"""A broker that confirms nothing costs the connection; one that says why it reads nothing does not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from dispatcher.amqp.alongside import alongside
from dispatcher.amqp.connection import Connection, ConnectionRules
from dispatcher.amqp.lane import Lane
from dispatcher.amqp.publisher import Message, Publisher
from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError
from tests.amqp.builders import Broker, Sent, confirm

SILENCE_S = 0.05
MESSAGE = Message(exchange="task", key="order", body=b"{}", kind="task")


class StandingClock(SystemClock):
    """Goes on only where a test moves it, however long the machine takes."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


@dataclass
class SilentConnection:
    """Channels on which `confirm` decides about each publish; counts how often it was given up."""

    confirm: Callable[[], bool] = lambda: False
    is_blocked: bool = False
    drops: int = 0
    clock: SystemClock = field(default_factory=SystemClock)
    rules = ConnectionRules(call_timeout_s=SILENCE_S)
    name = "silent"

    @asynccontextmanager
    async def lane(self, *_: object, **__: object) -> AsyncIterator[tuple[None, Lane]]:
        yield None, self.broker.lane

    def __post_init__(self) -> None:
        def reply(number: int, sent: Sent) -> tuple[object, ...]:
            return confirm(number, sent) if self.confirm() else ()

        self.broker = Broker(reply)

    async def unblocked(self) -> None:
        await asyncio.Event().wait()

    def drop(self) -> None:
        self.drops += 1


async def publish_in_turn(connection: SilentConnection, times: int) -> list[bool]:
    """Publish one message after the other; whether each was confirmed."""
    publisher, confirmed = Publisher(cast("Connection", connection), []), []
    async with alongside(publisher.run()):
        for _ in range(times):
            try:
                await publisher.publish(MESSAGE)
            except OutcomeUnknownError:
                confirmed.append(False)
            else:
                confirmed.append(True)
    return confirmed


async def test_the_connection_is_given_up_when_nothing_was_confirmed_for_as_long_as_a_publish_waits():
    connection = SilentConnection()

    assert await publish_in_turn(connection, 2) == [False, False]
    assert connection.drops == 2


async def test_the_connection_is_kept_while_others_get_their_confirms():
    answers, clock, written = iter([False, True]), StandingClock(), asyncio.Event()

    def confirms() -> bool:
        written.set()
        return next(answers)

    connection = SilentConnection(confirm=confirms, clock=clock)
    publisher = Publisher(cast("Connection", connection), [])

    async def publish_unconfirmed() -> None:
        with pytest.raises(OutcomeUnknownError):
            await publisher.publish(MESSAGE)

    async with alongside(publisher.run()), asyncio.TaskGroup() as publishing:
        publishing.create_task(publish_unconfirmed())
        await written.wait()
        clock.now_s = SILENCE_S / 2
        await publisher.publish(MESSAGE)
        clock.now_s = SILENCE_S

    assert connection.drops == 0


async def test_nothing_is_written_to_a_broker_that_reads_nothing_and_its_connection_is_kept():
    connection = SilentConnection(is_blocked=True)

    assert await publish_in_turn(connection, 2) == [False, False]
    assert (connection.broker.sent, connection.drops) == ([], 0)
