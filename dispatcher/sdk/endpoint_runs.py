"""Runs of tasks that come as calls and are answered in their replies.

The same call may come twice, and the first may have started the task. So one that must not run
twice is said not to have started only where the inbox has been asked, and has noted it (I2).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import Enum

from dispatcher.clock import Clock
from dispatcher.errors import DispatcherError, OverloadedError, UnavailableError, first_error
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Delivery, Settlement
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.envelope import envelope_of
from dispatcher.sdk.handler_thread import HandlerThread
from dispatcher.sdk.in_hand import InHand
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.load_window import LoadWindow
from dispatcher.sdk.outcome import Outcome
from dispatcher.sdk.parts import IntakeRules, Parts
from dispatcher.sdk.runs import Arrival, Runs
from dispatcher.sdk.telling import Teller, never

_log = logging.getLogger(__name__)
CALLS_PER_PLACE = 8
"""Calls in hand for each place of a handler: most of them wait for a run that goes on.

Beyond, nothing is started or waited for. As many again may still ask the inbox what is known of
their task: what did not start is `busy`, what runs goes on, and what has ended is told.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The encoded result frame; `asks_pause` where too many calls are in hand to start anything."""

    frame: bytes
    asks_pause: bool = False


class NoResult(Enum):
    """Why there is no result."""

    RUNS = "runs"
    """The task, which must not run twice, is being run for an earlier call: that is told how it ends."""
    UNKNOWN = "unknown"
    """It may have run, and nothing more is told of it."""


CallReply = Told | NoResult


class EndpointRuns:
    """Answers tasks with the agent's handlers and inbox, as a runtime would over a queue."""

    def __init__(
        self, agent: Agent, inbox: Inbox, instance_id: str, *, rules: IntakeRules, clock: Clock
    ) -> None:
        self._agent = agent
        self._pause_s = rules.pause_s
        self._handlers = HandlerThread(agent.max_load)
        self._most = CALLS_PER_PLACE * agent.max_load
        self._instance_id = instance_id
        self._clock = clock
        parts = Parts(
            agent=agent,
            owner=instance_id,
            link=_Unheard(),
            inbox=inbox,
            handlers=self._handlers,
            clock=clock,
            rules=rules,
        )
        self._runs = Runs(parts, Teller(parts), LoadWindow(), InHand())
        self._group: asyncio.TaskGroup | None = None
        self._calls: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """Handlers at work."""
        return self._handlers.running

    @asynccontextmanager
    async def open(self, drain_s: float) -> AsyncIterator[None]:
        """Run tasks inside the block; on leaving, those in hand have `drain_s` seconds to end.

        Meanwhile nothing more is started, and who asks for that is told.
        """
        async with self._handlers, asyncio.TaskGroup() as group:
            self._group = group
            try:
                yield
            finally:
                self._runs.drain()
                try:
                    if self._calls:
                        await asyncio.wait(self._calls, timeout=drain_s)
                finally:
                    self._group = None
                    for call in self._calls:
                        call.cancel()

    async def answer(self, task: TaskFrame) -> CallReply:
        """What to tell this call of the task.

        A long task is run like any other: the reply is its only result. Cancelled, the run goes on,
        for the next who asks. Raises `UnavailableError` or `OverloadedError` for an idempotent task
        that this call did not start: it may run anywhere.
        """
        refusal = self._refusal()
        if refusal is not None and self._is_idempotent(task):
            raise refusal
        if self._group is None or len(self._calls) >= 2 * self._most:
            return NoResult.UNKNOWN
        arrival = Arrival(
            task=task.model_copy(update={"lease_ms": None}),
            since=self._clock.monotonic(),
            is_lost=never,
            may_start=refusal is None,
        )
        told: asyncio.Future[CallReply] = asyncio.get_running_loop().create_future()
        call = self._group.create_task(self._run(arrival, told))
        self._calls.add(call)
        call.add_done_callback(lambda done: self._ended(done, told))
        return await told

    def cancel(self, task_id: str) -> None:
        """Stop the task's run, if it is here; if it comes later it will not run."""
        _log.info("task.cancelled", extra={"task_id": task_id})
        self._runs.cancel(task_id)

    def _refusal(self) -> DispatcherError | None:
        if self._group is None:
            return UnavailableError("the endpoint is not open")
        return OverloadedError("too many calls are in hand") if len(self._calls) >= self._most else None

    def _is_idempotent(self, task: TaskFrame) -> bool:
        """Whether it may run twice, if it can run here at all."""
        handler = self._agent.handlers.get(task.capability)
        return handler is None or handler.idempotent

    def _ended(self, call: asyncio.Task[None], told: asyncio.Future[CallReply]) -> None:
        """However the call ended, be it before its first step, who waits for it is told."""
        self._calls.discard(call)
        _tell(told, NoResult.UNKNOWN)

    async def _run(self, arrival: Arrival, told: asyncio.Future[CallReply]) -> None:
        """Answer as soon as there is an answer, and stay until the handler has really ended."""
        try:
            async with asyncio.TaskGroup() as group:
                _tell(told, self._reply(arrival, await self._persistently(arrival, group)))
        except* DispatcherError as errors:
            if not told.done():
                told.set_exception(first_error(errors))
        except* Exception:  # noqa: BLE001 - one call must not stop the others
            _log.exception("call.failed", extra={"task_id": arrival.task.task_id})

    async def _persistently(self, arrival: Arrival, group: asyncio.TaskGroup) -> Outcome | Settlement | None:
        """Ask an inbox that fails again, within the budget, for a task that may run here and nowhere else."""
        until = arrival.since + (arrival.task.budget_ms / 1000 if arrival.may_start else 0.0)
        while True:
            try:
                return await self._runs.answer(arrival, group)
            except DispatcherError as error:
                if self._is_idempotent(arrival.task):
                    raise
                facts = {"task_id": arrival.task.task_id, "reason": error.error_code}
                _log.warning("task.not_begun", extra=facts)
            await self._clock.sleep(self._pause_s)
            if self._clock.monotonic() >= until:
                return None

    def _reply(self, arrival: Arrival, answer: Outcome | Settlement | None) -> CallReply:
        if isinstance(answer, Outcome):
            frame = answer.answer_to(envelope_of(arrival.task), self._instance_id)
            return Told(frame=frame, asks_pause=answer.has_not_run and not arrival.may_start)
        runs = answer is not None and not self._is_idempotent(arrival.task)
        return NoResult.RUNS if runs else NoResult.UNKNOWN


def _tell(told: asyncio.Future[CallReply], reply: CallReply) -> None:
    if not told.done():
        told.set_result(reply)


class _Unheard:
    """A link that nothing is sent over: there is a reply to each call, and no way for anything else."""

    async def call(self, frame: bytes) -> bytes:
        raise UnavailableError("there is no link")

    async def beat(self, frame: bytes) -> None:
        """Nobody hears it."""

    async def publish_result(self, frame: bytes) -> None:
        """Results are told in the reply."""

    async def publish_signal(self, frame: bytes) -> None:
        """Progress and pieces are lost; the reply holds the whole result."""

    def controls(self, agent_id: AgentId) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise UnavailableError("there is no link")

    def deliveries(
        self, agent_id: AgentId, prefetch: int
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery]]:
        raise UnavailableError("there is no link")
