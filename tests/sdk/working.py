"""An agent whose handlers tests can hold and let go, and its intake over a stub link."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.backoff import BackoffRules
from dispatcher.clock import SystemClock
from dispatcher.protocol.frames import CancelFrame
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.intake import Intake
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.parts import IntakeRules, Parts
from dispatcher.sdk.task_view import TaskView
from tests.sdk.stub_link import WAIT_S, StubDelivery, StubLink

RULES = IntakeRules(pause_s=0.0, look_s=0.001, publish=BackoffRules(first_s=0.0))


class Work:
    """An agent whose handlers count their runs.

    `work.wait` runs until `finish`, or until it is cancelled; `work.block` until `let_go`, whatever comes.
    """

    def __init__(self, *, max_load: int = 8) -> None:
        self.runs: list[TaskView] = []
        self.fail_first = 0
        self.loop = asyncio.get_running_loop()
        self.began = asyncio.Event()
        self.let_go = threading.Event()
        self.agent = Agent("tester", max_load=max_load)
        self.agent.handler("work.do", description="Works.", idempotent=True)(self.do)
        self.agent.handler("work.once", description="Works once.")(self.do)
        self.agent.handler("work.wait", description="Waits.", idempotent=True)(self.wait)
        self.agent.handler("work.block", description="Blocks.", idempotent=True)(self.block)

    def do(self, task: TaskView) -> str:
        self.runs.append(task)
        if len(self.runs) <= self.fail_first:
            raise ValueError("not yet")
        return f"run {len(self.runs)}"

    def block(self, task: TaskView) -> str:
        answer = self.do(task)
        self.loop.call_soon_threadsafe(self.began.set)
        assert self.let_go.wait(WAIT_S)
        return answer

    async def wait(self, task: TaskView) -> str:
        self.runs.append(task)
        let_go = asyncio.Event()
        self.loop.call_soon_threadsafe(self._watch, asyncio.get_running_loop(), let_go)
        await let_go.wait()
        return f"run {len(self.runs)}"

    def _watch(self, handlers_loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        self.began.set()
        self._waiting = (handlers_loop, event)

    def finish(self) -> None:
        handlers_loop, event = self._waiting
        handlers_loop.call_soon_threadsafe(event.set)


@asynccontextmanager
async def intake_of(work: Work, link: StubLink, inbox: Inbox | None = None, **more) -> AsyncIterator[Intake]:
    async with HandlerThread(work.agent.max_load) as handlers:
        fields = {
            "agent": work.agent,
            "owner": "instance-1",
            "link": link,
            "inbox": inbox or MemoryInbox(),
            "handlers": handlers,
            "clock": SystemClock(),
            "rules": RULES,
        }
        yield Intake(Parts(**{**fields, **more}), LoadWindow())


async def handled(intake: Intake, task) -> StubDelivery:
    body = task if isinstance(task, bytes) else task.model_dump_json().encode()
    delivery = StubDelivery(body)
    await intake.handle(delivery)
    return delivery


def cancelling(task_id: str, *, agent_id: str = "tester") -> bytes:
    frame = CancelFrame(request_id="request-1", task_id=task_id, agent_id=agent_id, reason="caller")
    return frame.model_dump_json().encode()
