"""Calls cross into another thread's loop in order, and none is lost."""

import asyncio
import threading
from functools import partial

import pytest

from dispatcher.sdk.crossing import Crossing

CALLS = 2_000
WAIT_S = 10.0


async def test_calls_of_a_thread_are_all_made_in_their_order():
    crossing, made, done = Crossing(asyncio.get_running_loop()), list[int](), asyncio.Event()

    def send() -> None:
        for number in range(CALLS):
            crossing.call(partial(made.append, number))
        crossing.call(done.set)

    thread = threading.Thread(target=send)
    thread.start()
    async with asyncio.timeout(WAIT_S):
        await done.wait()
    thread.join(WAIT_S)

    assert made == list(range(CALLS))


async def test_calls_of_many_threads_are_all_made():
    crossing, made, done = Crossing(asyncio.get_running_loop()), list[int](), asyncio.Event()

    def take(number: int) -> None:
        made.append(number)
        if len(made) == 4 * CALLS:
            done.set()

    def send() -> None:
        for number in range(CALLS):
            crossing.call(partial(take, number))

    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(done.wait(), *(asyncio.to_thread(send) for _ in range(4)))

    assert len(made) == 4 * CALLS


async def test_a_call_made_on_the_way_is_made_too():
    crossing, done = Crossing(asyncio.get_running_loop()), asyncio.Event()

    crossing.call(lambda: crossing.call(done.set))

    async with asyncio.timeout(WAIT_S):
        await done.wait()


def test_a_closed_loop_is_said_each_time():
    loop = asyncio.new_event_loop()
    loop.close()
    crossing = Crossing(loop)

    for _ in range(2):
        with pytest.raises(RuntimeError):
            crossing.call(lambda: None)
