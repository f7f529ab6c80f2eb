"""Lines of one turn go out together; nothing that warns waits."""

import asyncio
import io
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from dispatcher.observe.turn_handler import TurnHandler


class Stream(io.StringIO):
    """Counts writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def logger(stream: Stream) -> Iterator[logging.Logger]:
    logger = logging.getLogger("dispatcher.test.turn")
    logger.setLevel(logging.INFO)
    handler = TurnHandler(stream)
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)


async def next_turn() -> None:
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


def test_outside_a_loop_each_line_is_written_at_once(stream: Stream, logger: logging.Logger):
    logger.info("one")
    logger.info("two")

    assert stream.writes == ["one\n", "two\n"]


async def test_the_lines_of_a_turn_are_one_write(stream: Stream, logger: logging.Logger):
    logger.info("one")
    logger.info("two")
    before = list(stream.writes)
    await next_turn()
    logger.info("three")
    await next_turn()

    assert before == []
    assert stream.writes == ["one\ntwo\n", "three\n"]


async def test_a_warning_takes_what_waits_with_it(stream: Stream, logger: logging.Logger):
    logger.info("one")
    logger.warning("two")

    assert stream.writes == ["one\ntwo\n"]


async def test_what_waits_is_bounded(stream: Stream, logger: logging.Logger):
    for _ in range(TurnHandler.MOST_LINES):
        logger.info("line")

    assert len(stream.writes) == 1


async def test_a_loop_that_ended_before_its_turn_did_holds_nothing_back(
    stream: Stream, logger: logging.Logger
):
    def another_loop() -> None:
        loop = asyncio.new_event_loop()
        loop.call_soon(logger.info, "never flushed there")
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()

    await asyncio.to_thread(another_loop)
    logger.info("here")
    await next_turn()

    assert "".join(stream.writes) == "never flushed there\nhere\n"


async def test_a_filter_of_the_handler_is_asked(stream: Stream, logger: logging.Logger):
    logger.handlers[0].addFilter(lambda record: record.getMessage() != "one")
    logger.warning("one")
    logger.warning("two")

    assert stream.writes == ["two\n"]


async def test_no_thread_loses_a_line_or_breaks_into_another(stream: Stream, logger: logging.Logger):
    def log_of(thread: int) -> None:
        for _ in range(200):
            logger.info("%s", thread)

    async with asyncio.TaskGroup() as group:
        for thread in range(4):
            group.create_task(asyncio.to_thread(log_of, thread))
        for _ in range(200):
            logger.info("loop")
            await next_turn()

    lines = "".join(stream.writes).splitlines()
    assert Counter(lines) == {"loop": 200, "0": 200, "1": 200, "2": 200, "3": 200}
