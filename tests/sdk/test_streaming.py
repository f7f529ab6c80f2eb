"""Handlers that yield their reply piece by piece."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import BaseModel

from dispatcher.errors import OutcomeUnknownError
from dispatcher.protocol.frames import PartialFrame, ResultBody, ResultStatus
from dispatcher.sdk.handler import read_signature
from dispatcher.sdk.pieces import MOST_BYTES, Joined, Piece, Pieces
from dispatcher.sdk.reply import BusinessError, NeedsInput, Reply
from dispatcher.sdk.task_view import TaskView
from dispatcher.sdk.testing import run_handler
from tests.sdk.stub_link import WAIT_S, StubLink, task_frame
from tests.sdk.working import Work, cancelling, handled, intake_of


class Count(BaseModel):
    words: int


def say() -> Iterator[str | Reply[Count]]:
    yield "one "
    yield Reply(text="two ", data=Count(words=2), usage={"tokens": 2})
    yield "three"


async def say_async() -> AsyncIterator[str | Reply[Count]]:
    for piece in say():
        yield piece


@pytest.mark.parametrize("function", [say, say_async])
async def test_the_result_is_the_joined_text_and_the_data_of_the_last_reply(function):
    work = Work()
    work.agent.handler("work.say", description="Says.")(function)

    outcome = await run_handler(work.agent, "work.say")

    assert outcome.result == ResultBody(text="one two three", data={"words": 2})
    assert outcome.usage == {"tokens": 2}


@pytest.mark.parametrize("function", [say, say_async])
def test_the_model_of_the_pieces_is_the_output_schema(function):
    assert read_signature(function).output_model is Count


@pytest.mark.parametrize("function", [say, say_async])
async def test_pieces_come_before_the_result_in_rising_order(function):
    work, link = Work(), StubLink()
    work.agent.handler("work.say", description="Says.")(function)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.say"))

    signals = [await link.signal() for _ in range(link.signals.qsize())]
    partials = [signal for signal in signals if isinstance(signal, PartialFrame)]
    assert [partial.sequence for partial in partials] == list(range(len(partials)))
    assert "".join(partial.result.text or "" for partial in partials) == "one two three"
    assert link.reports[-1] == "result"


async def test_what_comes_between_two_frames_is_joined():
    sent: list[ResultBody] = []
    first = asyncio.Event()

    async def send(sequence, body):
        sent.append(body)
        first.set()

    async with asyncio.TaskGroup() as group:
        pieces = Pieces(send, group)
        await asyncio.wrap_future(pieces.put(Piece(text="a", data={})))
        await first.wait()
        for letter in "bcd":
            await asyncio.wrap_future(pieces.put(Piece(text=letter, data={"last": letter})))
        await pieces.close()

    assert [body.text for body in sent] == ["a", "bcd"]
    assert sent[1].data == {"last": "d"}


async def test_at_the_bound_the_handler_waits_until_pieces_are_sent():
    let_go = asyncio.Event()

    async def send(sequence, body):
        await let_go.wait()

    async with asyncio.TaskGroup() as group:
        pieces = Pieces(send, group)
        first = pieces.put(Piece(text="a", data={}))
        await asyncio.wrap_future(first)
        await asyncio.wrap_future(pieces.put(Piece(text="b" * (MOST_BYTES - 1), data={})))
        full = pieces.put(Piece(text="c", data={}))
        _, waiting = await asyncio.wait([asyncio.wrap_future(full)], timeout=0.05)
        let_go.set()
        await asyncio.wait(waiting, timeout=WAIT_S)
        await pieces.close()

    assert len(waiting) == 1
    assert full.done()


async def test_lost_pieces_do_not_harm_the_result():
    work, link = Work(), StubLink()
    link.publish_errors = [OutcomeUnknownError("lost")]
    work.agent.handler("work.say", description="Says.")(say)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.say"))

    assert (await link.result()).result.text == "one two three"


def asks() -> Iterator[str]:
    yield "Let me see. "
    raise NeedsInput("Which order?", ("order_number",))


def fails() -> Iterator[str]:
    yield "Let me see. "
    raise BusinessError("Sold out.")


def yields_a_number() -> Iterator[object]:
    yield 7


def yields_half_a_character() -> Iterator[str]:
    yield "\ud800"


def yields_for_ever() -> Iterator[str]:
    while True:
        yield "x" * 100_000


@pytest.mark.parametrize(
    ("function", "status", "code"),
    [
        (asks, ResultStatus.NEEDS_INPUT, None),
        (fails, ResultStatus.SUCCESS, "business_error"),
        (yields_a_number, ResultStatus.ERROR, "agent_error"),
        (yields_half_a_character, ResultStatus.ERROR, "agent_error"),
        (yields_for_ever, ResultStatus.ERROR, "result_too_large"),
    ],
)
async def test_a_stream_may_end_in_other_ways(function, status, code):
    work = Work()
    work.agent.handler("work.say", description="Says.")(function)

    outcome = await run_handler(work.agent, "work.say")

    assert (outcome.status, outcome.error_code) == (status, code)


async def test_a_cancelled_stream_is_closed_between_two_pieces():
    work, link = Work(), StubLink()
    closed = asyncio.Event()

    def goes_on(task: TaskView) -> Iterator[str]:
        try:
            yield "first"
            work.loop.call_soon_threadsafe(work.began.set)
            task.cancelled.wait(WAIT_S)
            yield "second"
            yield "never"
        finally:
            work.loop.call_soon_threadsafe(closed.set)

    work.agent.handler("work.say", description="Says.")(goes_on)
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.say")))
        await work.began.wait()
        intake.cancel(cancelling("task-request-1:0"))
        await closed.wait()

    assert (await link.result()).error_code == "cancelled"


def test_an_empty_stream_has_no_text():
    assert Joined().reply() == Reply()
