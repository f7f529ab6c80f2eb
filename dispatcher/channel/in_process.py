"""Agents in the dispatcher's own process: the same frames and guarantees, without a broker.

Nothing survives the process; the ledger publishes again what was open (DESIGN §6). All of it
belongs to one event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

from dispatcher.amqp.alongside import alongside
from dispatcher.channel.budget import remaining_ms
from dispatcher.channel.channel import RESULTS, Dead, DeadReason, Inbound
from dispatcher.channel.controls import Controls
from dispatcher.channel.result_intake import DEFAULT_RESULT_RULES, ResultIntake, ResultRules
from dispatcher.channel.task_queue import DEFAULT_QUEUE_RULES, QueueRules, TaskQueue
from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import OutcomeUnknownError, RefusedError, TooLargeError, UnroutableError
from dispatcher.identifiers import AgentId, ReplicaId, RequestId
from dispatcher.protocol.frames import CancelFrame, TaskFrame
from dispatcher.protocol.link import Delivery, Link, Settlement
from dispatcher.protocol.topology import MAX_FRAME_BYTES

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessRules:
    """Limits of the channel.

    At most `dead_letters` wait to be taken, the oldest is lost then; one that can't be taken now is
    offered again after `dead_pause_s`. Leaving waits at most `close_timeout_s` for results in hand.
    """

    queue: QueueRules = DEFAULT_QUEUE_RULES
    results: ResultRules = DEFAULT_RESULT_RULES
    dead_letters: int = 1_000
    dead_pause_s: float = 1.0
    expiry_look_s: float = 1.0
    reply_timeout_s: float = 5.0
    close_timeout_s: float = 5.0


DEFAULT_RULES = InProcessRules()


class InProcessChannel:
    """Implements `channel.Channel`; `link` is the agents' end of it."""

    def __init__(self, rules: InProcessRules = DEFAULT_RULES, clock: Clock | None = None) -> None:
        self._rules = rules
        self._clock = clock or SystemClock()
        self._queues: dict[AgentId, TaskQueue] = {}
        self.controls = Controls()
        self._inbound: Inbound | None = None
        self._intake = ResultIntake(self._hand_over, rules.results, self._clock)
        self._in_hand = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._dead: asyncio.Queue[Dead] = asyncio.Queue(rules.dead_letters)

    def link(self) -> Link:
        """A way for agents of this process to reach the dispatcher."""
        return _InProcessLink(self)

    @asynccontextmanager
    async def open(self, inbound: Inbound) -> AsyncIterator[None]:
        """Take results and registry frames until the block ends."""
        self._inbound = inbound
        try:
            async with alongside(self._bury_each(inbound)):
                yield
        finally:
            self._inbound = None
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rules.close_timeout_s):
                    await self._idle.wait()

    async def prepare(self, agent_id: AgentId) -> None:
        """Create the agent's queue."""
        self.queue_of(agent_id)

    async def send(self, agent_id: AgentId, task: TaskFrame, *, bound: bool = False) -> None:
        """Put the encoded frame into the agent's queue."""
        expires_at = self._clock.monotonic() + remaining_ms(task) / 1000
        body = checked_size(task.model_dump_json().encode())
        queue = self._queues.get(agent_id)
        if queue is None:
            raise UnroutableError(f"no queue for agent {agent_id}")
        if not queue.put(body, expires_at):
            raise RefusedError(f"the queue of agent {agent_id} is full")

    async def cancel(self, agent_id: AgentId, frame: CancelFrame) -> None:
        """Tell the agent's instances in this process."""
        self.controls.tell(agent_id, frame.model_dump_json().encode())

    async def wake(self, replica_id: ReplicaId, request_id: RequestId) -> None:
        """There is one replica: whatever its name, it is this one."""
        if self._inbound:
            self._inbound.on_wake(request_id)

    async def announce_registry_change(self) -> None:
        """There is no other replica to tell."""

    def problem(self) -> str | None:
        """It works whenever it is open."""
        return None if self.is_ready() else "the channel is not open"

    def is_ready(self) -> bool:
        """Whether the channel is open."""
        return self._inbound is not None

    def queue_of(self, agent_id: AgentId) -> TaskQueue:
        """The agent's queue, created when an agent consumes before it is prepared."""
        if agent_id not in self._queues:
            self._queues[agent_id] = TaskQueue(self._rules.queue, partial(self._bury, agent_id), self._clock)
        return self._queues[agent_id]

    async def call(self, frame: bytes) -> bytes:
        """Answer a registry frame."""
        try:
            async with asyncio.timeout(self._rules.reply_timeout_s):
                return await self._opened().on_registry(frame)
        except TimeoutError as error:
            raise OutcomeUnknownError("the dispatcher did not answer in time") from error

    def beat(self, frame: bytes) -> None:
        """Hand over a heartbeat, if anyone is there."""
        if self._inbound:
            self._inbound.on_heartbeat(frame)

    async def take_result(self, frame: bytes) -> None:
        """Offer a result until the dispatcher took it."""
        checked_size(frame)
        self._in_hand += 1
        self._idle.clear()
        try:
            settlement = Settlement.REQUEUE
            while settlement is Settlement.REQUEUE:
                # A closed channel ends the offering; to the intake it would be one more failure.
                self._opened()
                settlement = await self._intake.offer(frame)
            if settlement is Settlement.DEAD:
                self._bury(RESULTS, frame, DeadReason.REJECTED)
        finally:
            self._in_hand -= 1
            if not self._in_hand:
                self._idle.set()

    def _bury(self, source: str, body: bytes, reason: DeadReason) -> None:
        if self._dead.full():
            self._dead.get_nowait()
            log.warning("dead_letters.full", extra={"limit": self._dead.maxsize})
        self._dead.put_nowait(Dead(source=source, body=body, reason=reason))

    async def _bury_each(self, inbound: Inbound) -> None:
        while True:
            dead = await self._next_dead()
            while await inbound.on_dead(dead) is Settlement.REQUEUE:
                await self._clock.sleep(self._rules.dead_pause_s)

    async def _next_dead(self) -> Dead:
        """What expires without anybody asking for it is looked for from time to time."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rules.expiry_look_s):
                    return await self._dead.get()
            for queue in self._queues.values():
                queue.bury_expired()

    async def _hand_over(self, frame: bytes) -> Settlement:
        return await self._opened().on_result(frame)

    def _opened(self) -> Inbound:
        if self._inbound is None:
            raise OutcomeUnknownError("the channel is not open")
        return self._inbound


class _InProcessLink:
    """Implements `protocol.link.Link` by direct calls."""

    def __init__(self, channel: InProcessChannel) -> None:
        self._channel = channel

    async def call(self, frame: bytes) -> bytes:
        return await self._channel.call(frame)

    async def beat(self, frame: bytes) -> None:
        self._channel.beat(frame)

    async def publish_result(self, frame: bytes) -> None:
        await self._channel.take_result(frame)

    async def publish_signal(self, frame: bytes) -> None:
        await self._channel.take_result(frame)

    @asynccontextmanager
    async def controls(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[bytes]]:
        with self._channel.controls.heard(agent_id) as frames:
            yield frames

    @asynccontextmanager
    async def deliveries(self, agent_id: AgentId, prefetch: int) -> AsyncIterator[AsyncIterator[Delivery]]:
        with self._channel.queue_of(agent_id).consumed(prefetch) as consumer:
            yield consumer


def checked_size(frame: bytes) -> bytes:
    """The frame itself; raises `TooLargeError` beyond the size every transport takes."""
    if len(frame) > MAX_FRAME_BYTES:
        raise TooLargeError(f"a frame of {len(frame)} bytes; at most {MAX_FRAME_BYTES} are sent")
    return frame
