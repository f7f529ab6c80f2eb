import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from typing import TypeVarTuple, cast

import pytest

from dispatcher.errors import UnavailableError
from dispatcher.store.own_thread import OwnThread
from tests.store.exhausted import Exhausted

LIMIT_S = 5
Given = TypeVarTuple("Given")


@pytest.fixture
def thread() -> Iterator[OwnThread]:
    thread = OwnThread("visited")
    yield thread
    thread.end()


async def test_functions_run_in_the_one_thread_in_order_of_arrival(thread: OwnThread):
    names: list[str] = []

    def note(number: int) -> int:
        names.append(f"{threading.current_thread().name} {number}")
        return number

    answers = await asyncio.gather(*(thread.run(partial(note, number)) for number in range(3)))

    assert answers == [0, 1, 2]
    assert names == ["visited 0", "visited 1", "visited 2"]


async def test_what_a_function_raises_reaches_its_caller_alone(thread: OwnThread):
    def fail() -> None:
        raise ValueError("bad")

    failed, done = await asyncio.gather(thread.run(fail), thread.run(lambda: "done"), return_exceptions=True)

    assert isinstance(failed, ValueError)
    assert done == "done"


async def test_a_visit_that_was_cancelled_before_its_turn_never_runs(thread: OwnThread):
    has_begun, may_go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def wait() -> None:
        has_begun.set()
        may_go_on.wait(LIMIT_S)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(thread.run(wait))
        second = group.create_task(thread.run(lambda: ran.append("second")))
        await asyncio.to_thread(has_begun.wait, LIMIT_S)
        second.cancel()
        await asyncio.wait([second])
        may_go_on.set()

    await thread.run(lambda: ran.append("third"))

    assert ran == ["third"]


async def test_a_caller_that_left_meanwhile_is_not_told(thread: OwnThread):
    has_begun, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        has_begun.set()
        may_go_on.wait(LIMIT_S)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        caller = group.create_task(thread.run(wait))
        await asyncio.to_thread(has_begun.wait, LIMIT_S)
        caller.cancel()
        may_go_on.set()

    assert await thread.run(lambda: "still here") == "still here"


class SuddenlyClosed(asyncio.SelectorEventLoop):
    """Closed, for our thread, right after it was asked whether it is."""

    def __init__(self) -> None:
        super().__init__()
        self.was_told = threading.Event()

    def call_soon_threadsafe(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.current_thread().name == "visited":
            self.was_told.set()
            raise RuntimeError("Event loop is closed")
        return super().call_soon_threadsafe(callback, *args, context=context)


def test_a_loop_that_is_closed_meanwhile_does_not_end_the_thread(thread: OwnThread):
    async def leave(loop: SuddenlyClosed) -> None:
        async with asyncio.TaskGroup() as group:
            caller = group.create_task(thread.run(lambda: None))
            await asyncio.to_thread(loop.was_told.wait, LIMIT_S)
            caller.cancel()

    async def visit() -> str:
        async with asyncio.timeout(LIMIT_S):
            return await thread.run(lambda: "still here")

    with asyncio.Runner(loop_factory=SuddenlyClosed) as runner:
        runner.run(leave(cast("SuddenlyClosed", runner.get_loop())))

    assert asyncio.run(visit()) == "still here"


async def test_it_can_be_visited_again_after_its_end(thread: OwnThread):
    await thread.run(lambda: None)
    thread.end()
    thread.end()

    assert await thread.run(lambda: "again") == "again"


async def test_where_no_thread_can_be_started_the_next_visit_tries_again():
    thread = OwnThread("visited", Exhausted(times=1))

    with pytest.raises(UnavailableError, match="no thread"):
        await thread.run(lambda: None)

    async with asyncio.timeout(LIMIT_S):
        assert await thread.run(lambda: "here") == "here"
    thread.end()
