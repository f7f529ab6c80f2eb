"""Handlers run apart from the loop that talks to the dispatcher."""

import asyncio
import threading

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import RequestError
from dispatcher.protocol.frames import ResultStatus
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.handler_call import Call
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.outcome import Outcome
from dispatcher.sdk.reply import BusinessError, NeedsInput
from dispatcher.sdk.task_view import TaskView
from tests.sdk.stub_link import task_view

WAIT_S = 10.0


def call_of(function, *, seconds: float = WAIT_S, idempotent: bool = False) -> Call:
    agent = Agent("tester")
    agent.handler("work.do", description="Works.", idempotent=idempotent)(function)
    return Call(handler=agent.handlers["work.do"], fields={}, view=task_view(), seconds=seconds)


async def outcome_of_run(function, **options) -> Outcome:
    async with HandlerThread(1) as handlers:
        assert handlers.take_place()
        return await handlers.run(call_of(function, **options))


async def test_neither_kind_of_handler_runs_on_the_links_thread():
    async def on_loop(task: TaskView) -> str:
        return threading.current_thread().name

    def in_thread(task: TaskView) -> str:
        return threading.current_thread().name

    names = {(await outcome_of_run(on_loop)).result.text, (await outcome_of_run(in_thread)).result.text}

    assert names == {"handlers", "handler-work.do"}


async def test_an_exception_is_for_operators_and_may_be_retried_only_if_idempotent():
    def fails() -> str:
        raise KeyError("secret of the database")

    once, idempotent = await outcome_of_run(fails), await outcome_of_run(fails, idempotent=True)

    assert (once.status, once.error_code, once.can_retry) == (ResultStatus.ERROR, "agent_error", False)
    assert once.error_message == "KeyError: 'secret of the database'"
    assert once.result.text is None
    assert idempotent.can_retry


@pytest.mark.parametrize("error", [SystemExit(3), TimeoutError("upstream"), StopIteration()])
async def test_no_exception_ends_more_than_its_own_run(error):
    def fails() -> str:
        raise error

    async def fails_on_loop() -> str:
        raise error

    outcomes = [await outcome_of_run(fails), await outcome_of_run(fails_on_loop)]

    assert [outcome.error_code for outcome in outcomes] == ["agent_error", "agent_error"]


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        UnspeakableError(),
        ValueError("NUL \x00"),
        RequestError("no", code="c" * 100),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_however_a_blocking_handler_fails_its_end_is_told(error):
    def fails() -> str:
        raise error

    assert (await outcome_of_run(fails)).status is ResultStatus.ERROR


async def test_a_handler_that_cancels_itself_has_failed():
    async def cancels() -> str:
        raise asyncio.CancelledError

    assert (await outcome_of_run(cancels)).error_code == "agent_error"


@pytest.mark.parametrize("answer", [NeedsInput("Which?"), BusinessError("Sold out.")])
async def test_answers_may_be_raised_or_returned(answer: NeedsInput | BusinessError):
    def raises() -> str:
        raise answer

    def returns() -> NeedsInput | BusinessError:
        return answer

    assert await outcome_of_run(raises) == await outcome_of_run(returns)


async def test_an_async_handler_past_its_budget_is_cancelled():
    cancelled = threading.Event()

    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    outcome = await outcome_of_run(waits, seconds=0.02, idempotent=True)

    assert (outcome.error_code, outcome.can_retry) == ("timeout", True)
    assert cancelled.is_set()


@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_a_stuck_handler_is_answered_for_and_keeps_its_place_until_it_ends(kind):
    let_go = threading.Event()

    def blocks() -> str:
        let_go.wait(WAIT_S)
        return "late"

    async def blocks_the_loop() -> str:
        return blocks()

    stuck = call_of(blocks if kind == "thread" else blocks_the_loop, seconds=0.02)
    async with HandlerThread(1) as handlers:
        handlers.take_place()
        run = handlers.start(stuck)
        answer = await run.answer()
        had_ended, has_place = run.has_ended, handlers.take_place()
        let_go.set()
        end = await run.end_within(WAIT_S)

    assert answer.error_code == "timeout"
    assert not had_ended
    assert not has_place
    assert end is not None
    assert end.result.text == "late"
    assert handlers.running == 0


async def test_leaving_does_not_wait_for_a_stuck_handler():
    let_go = threading.Event()

    def blocks() -> str:
        let_go.wait()
        return "late"

    async with asyncio.timeout(WAIT_S):
        outcome = await outcome_of_run(blocks, seconds=0.02)
    let_go.set()

    assert outcome.error_code == "timeout"


async def test_a_run_that_is_broken_off_before_its_first_step_has_ended_all_the_same():
    blocked, let_go = threading.Event(), threading.Event()

    async def breaks_off_the_next() -> str:
        before = asyncio.all_tasks()
        blocked.set()
        let_go.wait(WAIT_S)
        await SystemClock().sleep(0)  # the next one has its task now
        for task in asyncio.all_tasks() - before:
            task.cancel()
        return "done"

    async def never() -> str:
        raise AssertionError

    async with HandlerThread(2) as handlers:
        assert handlers.take_place()
        first = handlers.start(call_of(breaks_off_the_next))
        await asyncio.to_thread(blocked.wait, WAIT_S)
        assert handlers.take_place()
        second = handlers.start(call_of(never))
        let_go.set()
        ends = [await run.end_within(WAIT_S) for run in (first, second)]

    assert [end and (end.result.text, end.error_code) for end in ends] == [
        ("done", None),
        (None, "agent_error"),
    ]
    assert handlers.running == 0
