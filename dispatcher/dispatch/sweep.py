"""The sweep: ends what is past its time and finds what got lost, whichever replica accepted it."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dispatcher.clock import Clock
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.expire import expire, publish_again
from dispatcher.dispatch.lifecycle.ledger import Decide
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import AgentId, RequestId

logger = logging.getLogger(__name__)
BATCH = 200
"""Requests handled per look; the rest waits for the next one."""


class Idleness(Protocol):
    """What the reconcile pass asks about agents; the registry's live view."""

    def idle_agents(self) -> Collection[AgentId]:
        """Agents that are alive and whose instances report that nothing is running."""
        ...


class Steadiness:
    """Whether ledger and channel have worked long enough for every lease to be renewed again."""

    def __init__(self, clock: Clock, quiet_s: float) -> None:
        self._clock = clock
        self._quiet_s = quiet_s
        self._broken_at = clock.monotonic()

    def note(self, *, works: bool) -> None:
        """How it is at this moment."""
        if not works:
            self._broken_at = self._clock.monotonic()

    @property
    def lasts(self) -> bool:
        """Nothing was seen broken for that long; a replica that just started has seen nothing yet."""
        return self._clock.monotonic() - self._broken_at >= self._quiet_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One look at a time; several replicas may look at once, row locks keep their changes apart."""

    books: Bookkeeper
    assigner: Assigner
    agents: Idleness
    lost_after_s: float
    steadiness: Steadiness

    async def look(self) -> int:
        """End overdue attempts, tasks and requests; the number of requests touched.

        After an outage leases get the time to be renewed before they lapse.
        """
        try:
            overdue = await self.books.ledger.overdue(BATCH)
        except UnavailableError:
            self.steadiness.note(works=False)
            raise
        self.steadiness.note(works=self.books.channel.is_ready())
        held = not self.steadiness.lasts
        await self._all(overdue, partial(expire, assigner=self.assigner, hold_leases=held))
        return len(overdue)

    async def reconcile(self) -> int:
        """Publish again what the broker lost; the number of attempts made due again.

        Lost is what was confirmed more than `lost_after_s` ago, has no result, and whose agent has
        been idle at its latest heartbeats. A wrong guess costs one repetition, which the agent's
        inbox answers.
        """
        idle = self.agents.idle_agents()
        return await self._publish_lost(idle, self.lost_after_s) if idle else 0

    async def refill(self, agent_id: AgentId) -> None:
        """The agent's queue was lost with all that was in it: publish again what has no result.

        What its agent has already is answered from the inbox.
        """
        while await self._publish_lost((agent_id,), 0) == BATCH:
            logger.info("task.refill", extra={"agent_id": agent_id})
        self.books.outbox.poked.set()

    async def _publish_lost(self, agents: Collection[AgentId], age_s: float) -> int:
        lost = await self.books.ledger.unanswered(agents, age_s, BATCH)
        for attempt in lost:
            logger.warning("task.lost", extra={"task_id": attempt.task_id, "agent_id": attempt.agent_id})
        changed = await asyncio.gather(
            *(self._one(a.request_id, partial(publish_again, attempt=a)) for a in lost)
        )
        return sum(changed)

    async def _all(self, request_ids: Sequence[RequestId], decide: Decide) -> None:
        await asyncio.gather(*(self._one(request_id, decide) for request_id in request_ids))

    async def _one(self, request_id: RequestId, decide: Decide) -> bool:
        """One request's change; a failing one is logged and does not hold up the others."""
        try:
            await self.books.update(request_id, decide)
        except UnavailableError:
            raise
        except Exception:
            logger.exception("sweep.failed", extra={"request_id": request_id})
            return False
        return True
