"""Agents reached over HTTP: a task is posted to the agent's endpoint, which answers or calls back.

There is no queue: a task is handed over when its request goes out. From then on whatever becomes of
the call is told as a result, the agent's own or one written on its behalf.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from dispatcher.channel.budget import remaining_ms
from dispatcher.channel.channel import Inbound
from dispatcher.channel.http_call import HttpCaller
from dispatcher.channel.http_cancel import CancelPosts
from dispatcher.channel.http_reply import not_started, outcome_of
from dispatcher.channel.http_slots import CallSlots
from dispatcher.channel.in_process import checked_size
from dispatcher.channel.result_intake import DEFAULT_RESULT_RULES, ResultIntake, ResultRules
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DeliveryError, OutcomeUnknownError, UnroutableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.link import Settlement

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRules:
    """At most `calls` run at once, and `calls_per_agent` of one agent; the next is refused.

    Beside them at most `cancels` cancellations are told at once, `cancels_per_agent` to one agent;
    the next is lost.

    A send waits at most `send_wait_s` for the connection: an agent that can't be reached must not
    hold up those who send to others.
    """

    calls: int = 1_024
    calls_per_agent: int = 256
    cancels: int = 256
    cancels_per_agent: int = 64
    send_wait_s: float = 0.25
    results: ResultRules = DEFAULT_RESULT_RULES


DEFAULT_RULES = HttpRules()
LONGEST_CALL_S = 31.0


def _longest_call_s() -> float:
    return LONGEST_CALL_S


@dataclass(eq=False, slots=True, kw_only=True)
class _Call:
    """A call that goes on; it turns `bound` once its task was sent by others meanwhile."""

    agent_id: AgentId
    endpoint: str
    task: TaskFrame
    body: bytes
    bound: bool
    handed_over: asyncio.Future[None]

    def tell_sender(self) -> None:
        """The request goes out, or the sender waits no longer."""
        if not self.handed_over.done():
            self.handed_over.set_result(None)


class HttpChannel:
    """Implements `composite.TaskChannel`. `endpoint_of` is asked at every send.

    Leaving waits for calls in hand as long as `close_within_s` then says; what is cut off is known
    to the ledger as handed over, and ends by its time.
    """

    def __init__(
        self,
        endpoint_of: Callable[[AgentId], str | None],
        caller: HttpCaller,
        *,
        rules: HttpRules = DEFAULT_RULES,
        close_within_s: Callable[[], float] = _longest_call_s,
        clock: Clock | None = None,
    ) -> None:
        self._close_within_s = close_within_s
        self._endpoint_of = endpoint_of
        self._caller = caller
        self._rules = rules
        self._clock = clock or SystemClock()
        self._slots = CallSlots(total=rules.calls, per_agent=rules.calls_per_agent, clock=self._clock)
        places = CallSlots(total=rules.cancels, per_agent=rules.cancels_per_agent, clock=self._clock)
        self._cancels = CancelPosts(caller, places)
        self._calls: asyncio.TaskGroup | None = None
        self._running: dict[asyncio.Task[None], _Call] = {}
        self._called: dict[str, _Call] = {}
        """The calls that go on, by the token of their attempt."""
        self._inbound: Inbound | None = None
        self._intake = ResultIntake(self._hand_over, rules.results, self._clock)

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Call agents until the block ends; then start no more and let those in hand end."""
        allowed = [str(network) for network in self._caller.policy.allowed]
        if allowed:
            log.warning("http.networks_allowed", extra={"networks": allowed})
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

    async def reach(self, endpoint: str, client: str | None) -> None:
        """See `HttpCaller.reach`; asked when an agent registers, open or not."""
        await self._caller.reach(endpoint, client)

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """Return once the request goes out to the agent's endpoint, or connecting takes long.

        An attempt whose call goes on is not sent once more; that it is `bound` now holds for that call too.
        Raises `UnroutableError` where the agent can't be connected to or must not be called,
        `RefusedError` without a free slot or while the agent's Retry-After lasts. That connecting
        failed after the send returned is told as a result: the task surely did not start. That is not
        told of a `bound` task; its result or its time ends it. The call of a cancelled send goes on.
        """
        remaining_ms(task)
        body = checked_size(task.model_dump_json().encode())
        endpoint = self._allowed_endpoint(agent_id)
        if self._calls is None:
            raise OutcomeUnknownError("the channel is not open")
        if (going_on := self._called.get(task.token)) is not None:
            going_on.bound |= bound
            return
        self._slots.take(agent_id)
        handed_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call = _Call(
            agent_id=agent_id, endpoint=endpoint, task=task, body=body, bound=bound, handed_over=handed_over
        )
        self._called[task.token] = call
        running = self._calls.create_task(self._run(call))
        self._running[running] = call
        running.add_done_callback(lambda done: self._ended(call, done))
        try:
            await asyncio.wait({handed_over}, timeout=self._rules.send_wait_s)
        finally:
            call.tell_sender()
        handed_over.result()

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """Cut the calls of that task that go on from here, and tell the agent, without waiting for it.

        Nothing is told of a call that was cut: it says nothing of the agent. The word reaches those too
        who answered 202, or answer a call of another replica.
        """
        for running, call in tuple(self._running.items()):
            if (call.agent_id, call.task.task_id) == (agent_id, frame.task_id):
                running.cancel()
        if self._calls is None:
            return
        with suppress(UnroutableError):
            self._cancels.begin(agent_id, self._allowed_endpoint(agent_id), frame, self._calls)

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
            outcome = outcome_of(call.task, reply, bound=call.bound)
            if outcome.pause_s:
                self._slots.pause(call.agent_id, outcome.pause_s)
            if outcome.frame is not None:
                await self._deliver(outcome.frame)
        except DeliveryError as error:
            log.info("http.not_called", extra={**_facts(call), "reason": error.message})
            if not call.handed_over.done():
                call.handed_over.set_exception(error)
            elif not call.bound:
                await self._deliver(not_started(call.task, error.error_code))
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
        self._running.pop(running, None)
        self._called.pop(call.task.token, None)
        self._slots.give_back(call.agent_id)
        if not call.handed_over.done():
            call.handed_over.set_exception(OutcomeUnknownError("the call was given up"))

    async def _finish(self) -> None:
        """Wait for what is in hand, and cut off what takes too long."""
        if in_hand := {*self._running, *self._cancels.running}:
            await asyncio.wait(in_hand, timeout=self._close_within_s())
        for left in (*self._running, *self._cancels.running):
            left.cancel()

    async def _hand_over(self, frame: bytes) -> Settlement:
        return Settlement.REQUEUE if self._inbound is None else await self._inbound.on_result(frame)


def _facts(call: _Call) -> dict[str, str]:
    task = call.task
    return {"request_id": task.request_id, "task_id": task.task_id, "agent_id": call.agent_id}
