"""What calls on a channel raise, as its user sees it."""

import asyncio
from types import SimpleNamespace
from typing import cast

import aio_pika
import pytest

from dispatcher.amqp.connection import DEFAULT_RULES, Connection
from dispatcher.amqp.outcomes import LIBRARY_ERRORS
from dispatcher.clock import SystemClock

LIMIT_S = 5


class Opened:
    """A connection that is up, and its one channel."""

    def __init__(self) -> None:
        self.close_callbacks = set[object]()

    def channel(self, **_: object) -> "Opened":
        return self

    async def initialize(self) -> None:
        """Opens at once."""

    async def get_underlay_channel(self) -> SimpleNamespace:
        return SimpleNamespace(on_consumer_cancel_callbacks=set[object]())

    async def close(self) -> None:
        """Closes at once."""


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(Exception, ConnectionError), (TimeoutError, TimeoutError), (KeyError, KeyError)],
    ids=["the library's bare one", "the library's", "the user's"],
)
async def test_no_bare_exception_of_the_library_gets_out_of_a_channel(
    raised: type[Exception], seen: type[Exception]
):
    connection = Connection("amqp://localhost", "test", DEFAULT_RULES, SystemClock())
    connection._connection = cast("aio_pika.Connection", Opened())
    connection._up.set()

    with pytest.raises(seen) as failed:
        async with asyncio.timeout(LIMIT_S), connection.channel(asyncio.Event(), confirms=False):
            raise raised

    assert type(failed.value) is seen
    assert isinstance(failed.value, LIBRARY_ERRORS) is (raised is not KeyError)
