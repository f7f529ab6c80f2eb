import asyncio
from collections.abc import Callable

import pytest
from aio_pika.exceptions import AMQPConnectionError, ChannelInvalidStateError

from dispatcher.amqp.connection import ConnectionRules, keep_up

RULES = ConnectionRules(first_delay_s=1, longest_delay_s=4)


class EnoughError(Exception):
    """Ends the loop under test."""


class Pauses:
    """A clock that does not wait and keeps what was asked of it; ends the loop after `most`."""

    def __init__(self, most: int) -> None:
        self.asked: list[float] = []
        self._most = most

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        if len(self.asked) == self._most:
            raise EnoughError


async def pauses_after(*outcomes: BaseException | None) -> list[float]:
    remaining = iter(outcomes)

    async def attempt() -> None:
        outcome = next(remaining)
        if outcome is not None:
            raise outcome

    clock = Pauses(most=len(outcomes))
    with pytest.raises(EnoughError):
        await keep_up(attempt, "test", RULES, clock)
    return clock.asked


def within(delays: list[float], full: list[float]) -> bool:
    return all(whole / 2 <= delay <= whole for delay, whole in zip(delays, full, strict=True))


async def test_pauses_double_up_to_the_longest_one():
    delays = await pauses_after(*[AMQPConnectionError() for _ in range(5)])

    assert within(delays, [1, 2, 4, 4, 4])


async def test_pauses_start_over_after_something_that_was_up_and_got_lost():
    delays = await pauses_after(OSError(), OSError(), None, OSError())

    assert within(delays, [1, 2, 1, 2])


@pytest.mark.parametrize(
    "make", [asyncio.CancelledError, ChannelInvalidStateError, TimeoutError], ids=lambda make: make.__name__
)
async def test_what_the_library_raises_for_a_lost_connection_is_tried_again(
    make: Callable[[], BaseException],
):
    assert len(await pauses_after(make(), make())) == 2


async def test_a_programming_error_comes_out():
    async def attempt() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await keep_up(attempt, "test", RULES, Pauses(most=1))


async def test_it_ends_when_cancelled():
    began = asyncio.Event()

    async def attempt() -> None:
        began.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(keep_up(attempt, "test", RULES, Pauses(most=1)))
        await began.wait()
        running.cancel()

    assert running.cancelled()


@pytest.mark.parametrize(
    "error", [None, ChannelInvalidStateError("closed")], ids=["as a loss", "as a failure"]
)
async def test_it_ends_though_the_library_lets_nobody_know_that_it_was_cancelled(error: Exception | None):
    began = asyncio.Event()

    async def attempt() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if error:
                raise error from None

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        keeping = group.create_task(keep_up(attempt, "test", RULES, Pauses(most=1)))
        await began.wait()
        keeping.cancel()

    assert keeping.cancelled()
