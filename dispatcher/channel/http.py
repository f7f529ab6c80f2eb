"""Agents reached over HTTP: a task is posted to the agent's endpoint, which answers or calls back.

There is no queue: a task is handed over when its request goes out. From then on whatever becomes of
the call is told as a result, the agent's own or one written on its behalf.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dispatcher.channel.budget import remaining_ms
from dispatcher.channel.channel import Inbound
from dispatcher.channel.http_call import HttpCaller
from dispatcher.channel.http_reply import answers_task, outcome_of
from dispatcher.channel.http_slots import CallSlots
from dispatcher.channel.in_process import checked_size
from dispatcher.channel.result_intake import DEFAULT_RESULT_RULES, ResultIntake, ResultRules
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DeliveryError, OutcomeUnknownError, UnroutableError
from dispatcher.identifiers import AgentId, TaskId
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRules:
    """At most `calls` run at once, and `calls_per_agent` of one agent; the next is refused.

    Leaving waits at most `close_timeout_s` for calls in hand; what is cut off then is known to the
    ledger as handed over, and ends by its time.
    """

    calls: int = 1_024
    calls_per_agent: int = 256
    results: ResultRules = DEFAULT_RESULT_RULES
    close_timeout_s: float = 31.0


DEFAULT_RULES = HttpRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    agent_id: AgentId
    endpoint: str
    task: TaskFrame
    body: bytes
    handed_over: asyncio.Future[None]

    def tell_sender(self) -> None:
        """The request goes out."""
        if not self.handed_over.done():
            self.handed_over.set_result(None)


class HttpChannel:
    """Implements `composite.TaskChannel`. `endpoint_of` is asked at every send."""

    def __init__(
        self,
        endpoint_of: Callable[[AgentId], str | None],
        caller: HttpCaller,
        *,
        rules: HttpRules = DEFAULT_RULES,
        clock: Clock | None = None,
    ) -> None:
        self._endpoint_of = endpoint_of
        self._caller = caller
        self._rules = rules
        self._clock = clock or SystemClock()
        self._slots = CallSlots(total=rules.calls, per_agent=rules.calls_per_agent, clock=self._clock)
        self._calls: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._inbound: Inbound | None = None
        self._intake = ResultIntake(self._hand_over, rules.results, self._clock)

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Call agents until the block ends; then start no more and let those in hand end."""
        allowed = [str(network) for network in self._caller.policy.allowed]
        if allowed:
            log.info("http.networks_allowed", extra={"networks": allowed})
        self._inbound = inbound
        try:
            async with self._caller.opened(), asyncio.TaskGroup() as calls:
                self._calls = calls
                try:
                    yield
                finally:
                    self._calls = None
                    await self._finish()
        except BaseExceptionGroup as errors:
            # Calls raise nothing, so this is the error of the block alone.
            raise errors.exceptions[0] from None
        finally:
            self._inbound = None

    async def prepare(self, agent_id: AgentId) -> None:
        """There is no queue to make."""

    async def send(self, agent_id: AgentId, task: TaskFrame) -> None:
        """Return once the request goes out to the agent's endpoint.

        Raises `UnroutableError` where the agent can't be connected to or must not be called,
        `RefusedError` without a free slot or while the agent's Retry-After lasts. The call of a
        cancelled send goes on.
        """
        remaining_ms(task)
        body = checked_size(task.model_dump_json().encode())
        endpoint = self._allowed_endpoint(agent_id)
        if self._calls is None:
            raise OutcomeUnknownError("the channel is not open")
        self._slots.take(agent_id)
        handed_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = _Call(agent_id=agent_id, endpoint=endpoint, task=task, body=body, handed_over=handed_over)
        running = self._calls.create_task(self._run(call))
        self._running.add(running)
        running.add_done_callback(lambda done: self._ended(call, done))
        await handed_over

    async def accept_callback(self, task_id: TaskId, body: bytes) -> Settlement:
        """Take a result that an agent posted for a task, at whichever replica.

        ACK once it is stored, DEAD for what is no result frame of that task, REQUEUE where it can't
        be stored now: the agent should post it again.
        """
        if not answers_task(body, task_id):
            return Settlement.DEAD
        return await self._intake.offer(body)

    def is_ready(self) -> bool:
        """Whether the channel is open."""
        return self._calls is not None

    def _allowed_endpoint(self, agent_id: AgentId) -> str:
        endpoint = self._endpoint_of(agent_id)
        if endpoint is None:
            raise UnroutableError(f"no endpoint is known for agent {agent_id}")
        if flaw := self._caller.policy.endpoint_flaw(endpoint):
            raise UnroutableError(f"the endpoint of agent {agent_id} {flaw}", code="endpoint_refused")
        return endpoint

    async def _run(self, call: _Call) -> None:
        """Call the agent and hand over what came of it; nothing that happens here ends the others."""
        try:
            reply = await self._caller.call(call.endpoint, call.task, call.body, call.tell_sender)
            outcome = outcome_of(call.task, reply)
            if outcome.pause_s:
                self._slots.pause(call.agent_id, outcome.pause_s)
            if outcome.frame is not None:
                await self._deliver(outcome.frame)
        except DeliveryError as error:
            log.info("http.not_called", extra={**_facts(call), "reason": error.message})
            if not call.handed_over.done():
                call.handed_over.set_exception(error)
        except Exception:
            log.exception("http.call_failed", extra=_facts(call))

    async def _deliver(self, frame: bytes) -> None:
        settlement = Settlement.REQUEUE
        while settlement is Settlement.REQUEUE:
            settlement = await self._intake.offer(frame)
        if settlement is Settlement.DEAD:
            log.error("http.result_dead", extra={"size_bytes": len(frame)})

    def _ended(self, call: _Call, running: asyncio.Task[None]) -> None:
        """However a call ended, its slot is free again and its sender knows."""
        self._running.discard(running)
        self._slots.give_back(call.agent_id)
        if not call.handed_over.done():
            call.handed_over.set_exception(OutcomeUnknownError("the call was given up"))

    async def _finish(self) -> None:
        """Wait for the calls in hand, and cut off those that take too long."""
        if self._running:
            await asyncio.wait(self._running, timeout=self._rules.close_timeout_s)
        for left in self._running:
            left.cancel()

    async def _hand_over(self, frame: bytes) -> Settlement:
        return Settlement.REQUEUE if self._inbound is None else await self._inbound.on_result(frame)


def _facts(call: _Call) -> dict[str, str]:
    task = call.task
    return {"request_id": task.request_id, "task_id": task.task_id, "agent_id": call.agent_id}
