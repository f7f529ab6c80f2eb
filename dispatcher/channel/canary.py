"""Task queues that are gone, or that no longer answer, are found, made again and filled again.

What they held is in the ledger. Several replicas may find the same queue: making it again and
filling it again may happen twice (I2).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from dispatcher.amqp.connection import Connection, keep_up
from dispatcher.amqp.declare import declare_once
from dispatcher.amqp.layout import task_queue
from dispatcher.amqp.probe import Probe, Standing
from dispatcher.errors import DispatcherError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.topology import Topology

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRules:
    """Seconds. All queues are asked every `every_s`, and each has `answer_s` to answer.

    A queue that was made again is filled again `refill_again_s` later once more: RabbitMQ 3.10 now
    and then loses what goes into a quorum queue right after it was declared in place of another.
    """

    every_s: float = 15.0
    answer_s: float = 5.0
    refill_again_s: float = 10.0


class Canary:
    """Asks the queues of all agents that `served` names, whenever the broker comes up and from then on.

    `on_queue_lost` is called after a queue was made again; if it raises, later once more.
    """

    def __init__(
        self,
        connection: Connection,
        topology: Topology,
        *,
        served: Callable[[], Collection[AgentId]],
        on_queue_lost: Callable[[AgentId], Awaitable[None]],
        rules: CanaryRules,
    ) -> None:
        self._connection = connection
        self._topology = topology
        self._served = served
        self._on_queue_lost = on_queue_lost
        self._rules = rules
        self._probe = Probe(connection, rules.answer_s)
        self._silent: frozenset[AgentId] = frozenset()
        self._suspects: set[AgentId] = set()
        self._wake = asyncio.Event()
        self._refills: dict[AgentId, tuple[float, ...]] = {}

    def suspect(self, agent_id: AgentId) -> None:
        """A task for that agent found no queue: ask now."""
        self._suspects.add(agent_id)
        self._wake.set()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        connection = self._connection
        await keep_up(self._watch, f"{connection.name} canary", connection.rules, connection.clock)

    async def _watch(self) -> None:
        """Ask again and again; return when the connection is lost or was given up for a silent queue."""
        lost = asyncio.Event()
        async with self._connection.channel(lost, confirms=False):
            await self._look(self._served())
            while not (lost.is_set() or self._silent):
                await self._pause()
                await self._look(self._take_suspects() or self._served())
                await self._refill()
        if self._silent:
            # The channels that asked are stuck. A new connection is the queue's second chance.
            self._connection.drop()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rules.every_s):
                await self._wake.wait()
        self._wake.clear()

    def _take_suspects(self) -> Collection[AgentId]:
        suspects, self._suspects = self._suspects, set()
        return suspects & set(self._served())

    async def _look(self, agents: Iterable[AgentId]) -> None:
        asked = {self._topology.task_queue(agent_id): agent_id for agent_id in agents}
        found = await self._probe.look(asked)
        silent = frozenset(asked[name] for name, standing in found.items() if standing is Standing.SILENT)
        for agent_id in sorted(asked[name] for name, how in found.items() if how is Standing.MISSING):
            log.warning("queue.missing", extra={"agent_id": agent_id})
            await self._make_again(agent_id)
        await self._replace(silent & self._silent)
        self._silent = silent - self._silent

    async def _replace(self, silent: frozenset[AgentId]) -> None:
        """Replace queues that were silent on two connections, unless every new one is silent too."""
        if not silent or not await self._probe.quorum_works(self._topology.canary_queue):
            return
        for agent_id in sorted(silent):
            log.error("queue.leaderless", extra={"agent_id": agent_id})
            if await self._probe.delete(self._topology.task_queue(agent_id)):
                await self._make_again(agent_id)

    async def _make_again(self, agent_id: AgentId) -> None:
        try:
            await declare_once(self._connection, task_queue(self._topology, agent_id))
        except DispatcherError as error:
            log.error("queue.not_made", extra={"agent_id": agent_id, "reason": error.message})  # noqa: TRY400
            return
        log.warning("queue.made_again", extra={"agent_id": agent_id})
        now = self._connection.clock.monotonic()
        self._refills[agent_id] = (now, now + self._rules.refill_again_s)
        await self._refill()

    async def _refill(self) -> None:
        """Have everything sent again that is due to be; what could not be now stays due."""
        now = self._connection.clock.monotonic()
        due = [(agent_id, times) for agent_id, times in self._refills.items() if times[0] <= now]
        for agent_id, (_, *later) in due:
            try:
                await self._on_queue_lost(agent_id)
            except DispatcherError as error:
                log.warning("queue.not_filled", extra={"agent_id": agent_id, "reason": error.message})
            else:
                self._refills[agent_id] = tuple(later)
        self._refills = {agent_id: times for agent_id, times in self._refills.items() if times}
