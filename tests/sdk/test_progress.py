"""How far a handler is, as the dispatcher hears it."""

import asyncio

import pytest

from dispatcher.clock import SystemClock
from dispatcher.errors import OutcomeUnknownError
from dispatcher.protocol.frames import ProgressFrame
from dispatcher.sdk.progress import EVERY_S, Progress
from dispatcher.sdk.task_view import TaskView
from tests.sdk.stub_link import WAIT_S, StubLink, task_frame, task_view
from tests.sdk.working import Work, handled, intake_of


class Stepped(SystemClock):
    """Every sleep lasts until it is let go."""

    def __init__(self) -> None:
        self.sleeps: asyncio.Queue[tuple[float, asyncio.Event]] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        self.sleeps.put_nowait((seconds, over))
        await over.wait()


async def test_of_what_is_reported_at_once_the_first_and_the_last_are_sent():
    clock, sent = Stepped(), []

    async def send(fraction, note):
        sent.append((fraction, note))

    async with asyncio.TaskGroup() as group:
        progress = Progress(send, group, clock)
        await asyncio.to_thread(progress, 0.0, "begins")
        seconds, over = await clock.sleeps.get()
        for percent in range(1, 100):
            await asyncio.to_thread(progress, percent / 100, None)
        over.set()
        _, over = await clock.sleeps.get()
        over.set()

    assert seconds == EVERY_S
    assert sent == [(0.0, "begins"), (0.99, None)]


async def test_after_its_end_nothing_is_sent():
    sent = []

    async def send(fraction, note):
        sent.append(fraction)

    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        progress = Progress(send, group, SystemClock())
        progress.close()
        progress(0.5, None)

    assert sent == []


@pytest.mark.parametrize(("given", "told"), [(-1, 0.0), (7, 1.0), (float("nan"), None), (None, None)])
async def test_a_fraction_out_of_range_does_no_harm(given, told):
    heard: asyncio.Queue[tuple[float | None, str | None]] = asyncio.Queue()

    async def send(fraction, note):
        heard.put_nowait((fraction, note))

    async with asyncio.TaskGroup() as group:
        progress = Progress(send, group, SystemClock())
        progress(given, "n" * 600 + "\x00")
        fraction, note = await heard.get()
        progress.close()

    assert (fraction, len(note or "")) == (told, 500)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_both_kinds_of_handlers_report_under_their_attempts_token(kind):
    work, link = Work(), StubLink()

    def reports(task: TaskView) -> str:
        task.progress(0.5, "half way")
        assert work.let_go.wait(WAIT_S)
        return "done"

    async def reports_too(task: TaskView) -> str:
        return await asyncio.to_thread(reports, task)

    work.agent.handler("work.tell", description="Reports.")(reports if kind == "thread" else reports_too)
    async with intake_of(work, link) as intake, asyncio.TaskGroup() as group:
        group.create_task(handled(intake, task_frame("work.tell")))
        signal = await link.signal()
        work.let_go.set()

    assert isinstance(signal, ProgressFrame)
    assert (signal.fraction, signal.note, signal.token) == (0.5, "half way", "token-of-attempt-1")
    assert (await link.result()).result.text == "done"


async def test_a_lost_report_does_no_harm():
    work, link = Work(), StubLink()
    link.publish_errors = [OutcomeUnknownError("lost")]

    def reports(task: TaskView) -> str:
        task.progress(note="\ud800")
        return "done"

    work.agent.handler("work.tell", description="Reports.")(reports)
    async with intake_of(work, link) as intake:
        await handled(intake, task_frame("work.tell"))

    assert (await link.result()).result.text == "done"


def test_a_view_without_a_dispatcher_takes_reports_too():
    task_view().progress(0.5)
