"""A hand-written dispatcher behind the agent's link: records what it hears, answers as told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import TypeAdapter

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import (
    AcknowledgedFrame,
    CancelFrame,
    Frame,
    RefusedFrame,
    RegisteredFrame,
    ReportFrame,
    ResultFrame,
    SignalFrame,
    TaskContext,
    TaskFrame,
    TaskPayload,
)
from dispatcher.protocol.link import Delivery, Settlement
from dispatcher.sdk.task_view import TaskView

WAIT_S = 10.0
_reports: TypeAdapter[ResultFrame | SignalFrame] = TypeAdapter(ReportFrame)


class StubDelivery:
    """Remembers how often and how it was settled."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.is_lost = False
        self.since = SystemClock().monotonic()
        self.settlements: list[Settlement] = []
        self._settled = asyncio.Event()

    async def settle(self, settlement: Settlement) -> None:
        self.settlements.append(settlement)
        self._settled.set()

    async def settlement(self) -> Settlement:
        """The settlement, once there is one; fails the test for a second one."""
        async with asyncio.timeout(WAIT_S):
            await self._settled.wait()
        (only,) = self.settlements
        return only


class StubLink:
    """Implements `protocol.link.Link`. `script` holds replies or errors for the next calls."""

    def __init__(self, *, heartbeat_ms: int = 60_000) -> None:
        self.script: list[Frame | Exception] = []
        self.calls: list[dict[str, Any]] = []
        self.beats: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        self.results: asyncio.Queue[ResultFrame] = asyncio.Queue()
        self.signals: asyncio.Queue[SignalFrame] = asyncio.Queue()
        self.reports: list[str] = []
        """The types of all frames published, in order."""
        self.publish_errors: list[Exception] = []
        self.tries = 0
        self.prefetch = 0
        self.consumers = 0
        self._heartbeat_ms = heartbeat_ms
        self._deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
        self._controls: asyncio.Queue[bytes] = asyncio.Queue()

    async def call(self, frame: bytes) -> bytes:
        sent = json.loads(frame)
        self.calls.append(sent)
        reply = self.script.pop(0) if self.script else self._usual(sent)
        if isinstance(reply, Exception):
            raise reply
        return reply.model_dump_json().encode()

    def called(self, kind: str) -> int:
        """How many frames of this type were sent by `call`."""
        return sum(call["type"] == kind for call in self.calls)

    async def beat(self, frame: bytes) -> None:
        self.beats.put_nowait(json.loads(frame))

    async def publish_signal(self, frame: bytes) -> None:
        await self.publish_result(frame)

    async def publish_result(self, frame: bytes) -> None:
        self.tries += 1
        if self.publish_errors:
            raise self.publish_errors.pop(0)
        report = _reports.validate_json(frame)
        self.reports.append(report.type)
        if isinstance(report, ResultFrame):
            self.results.put_nowait(report)
        else:
            self.signals.put_nowait(report)

    @asynccontextmanager
    async def controls(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._told()

    async def _told(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._controls.get()

    def cancel(self, task_id: str, *, agent_id: str = "tester") -> None:
        """Send a cancellation to the agent."""
        frame = CancelFrame(request_id="request-1", task_id=task_id, agent_id=agent_id, reason="caller")
        self._controls.put_nowait(frame.model_dump_json().encode())

    @asynccontextmanager
    async def deliveries(self, agent_id: AgentId, prefetch: int) -> AsyncIterator[AsyncIterator[Delivery]]:
        self.prefetch = prefetch
        self.consumers += 1
        try:
            yield self._arrivals()
        finally:
            self.consumers -= 1

    async def _arrivals(self) -> AsyncIterator[Delivery]:
        while True:
            yield await self._deliveries.get()

    def deliver(self, task: TaskFrame | bytes) -> StubDelivery:
        """Put a frame into the agent's queue."""
        body = task if isinstance(task, bytes) else task.model_dump_json().encode()
        delivery = StubDelivery(body)
        self._deliveries.put_nowait(delivery)
        return delivery

    async def result(self) -> ResultFrame:
        """The next result that was published."""
        async with asyncio.timeout(WAIT_S):
            return await self.results.get()

    async def signal(self) -> SignalFrame:
        """The next signal that was published."""
        async with asyncio.timeout(WAIT_S):
            return await self.signals.get()

    async def heard_beat(self) -> dict[str, object]:
        """The next heartbeat."""
        async with asyncio.timeout(WAIT_S):
            return await self.beats.get()

    def _usual(self, sent: dict[str, object]) -> Frame:
        if sent["type"] != "register":
            return AcknowledgedFrame()
        return RegisteredFrame(
            agent_id=str(sent["agent_id"]),
            instance_id=str(sent["instance_id"]),
            lease_id=f"lease-{self.called('register')}",
            heartbeat_ms=self._heartbeat_ms,
            offline_after_ms=45_000,
            declaration_digest="digest",
        )


def refused(code: str) -> RefusedFrame:
    """A refusal with that code."""
    return RefusedFrame(code=code, message=f"refused: {code}")


def task_frame(
    capability: str = "work.do", *, attempt: int = 1, key: str = "request-1:0", **more
) -> TaskFrame:
    """A task for the agent `tester`; each attempt has a token of its own."""
    fields = {
        "request_id": "request-1",
        "task_id": f"task-{key}",
        "attempt": attempt,
        "idempotency_key": key,
        "token": f"token-of-attempt-{attempt}",
        "agent_id": "tester",
        "capability": capability,
        "payload": TaskPayload(text="do it"),
        "context": TaskContext(user_id="u1001", language="zh"),
        "budget_ms": 30_000,
        "start_within_ms": 30_000,
        "reply_to": "results",
    }
    return TaskFrame(**{**fields, **more})


def task_view(**more) -> TaskView:
    """What a handler sees of the first attempt at `task_frame`'s task."""
    fields = {
        "request_id": "request-1",
        "task_id": "task-1",
        "attempt": 1,
        "idempotency_key": "request-1:0",
        "capability": "work.do",
        "text": "do it",
    }
    return TaskView(**{**fields, **more})
