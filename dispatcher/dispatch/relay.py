"""The relay: publishes due attempts from the ledger's outbox.

Fresh attempts of this replica arrive through the outbox; everything else (other replicas' left-overs,
delayed retries, work for agents that were full) is claimed from the ledger. Publishing twice is
harmless (I2), not publishing is not: what fails stays due.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dispatcher.channel.channel import Channel
from dispatcher.clock import Clock
from dispatcher.dispatch.assign import Assigner
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.expire import not_delivered
from dispatcher.dispatch.ledger import Due
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.task_frame import task_frame
from dispatcher.errors import DeliveryError, OutcomeUnknownError, UnavailableError
from dispatcher.identifiers import AgentId

logger = logging.getLogger(__name__)


class CapacityBook(Protocol):
    """How much an agent's live instances run at once; the registry's live view."""

    def capacity(self, agent_id: AgentId) -> int:
        """Tasks the agent's live instances take at once; 0 for one without live instances."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRules:
    """`publishers` sends are under way at a time; the ledger is looked at every `look_every_s` seconds."""

    reply_to: str
    publishers: int = 64
    look_every_s: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """One per replica."""

    outbox: Outbox
    books: Bookkeeper
    channel: Channel
    assigner: Assigner
    capacities: CapacityBook
    clock: Clock
    rules: RelayRules

    async def run(self) -> None:
        """Publish until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look())
            for _ in range(self.rules.publishers):
                group.create_task(self._publish())

    async def _publish(self) -> None:
        while True:
            due = await self.outbox.take()
            try:
                await self.publish(due)
            except UnavailableError:
                logger.warning("relay.ledger_unavailable", extra=_facts(due))

    async def publish(self, due: Due) -> None:
        """Send one attempt and record what became of it."""
        attempt = due.attempt
        try:
            await self.channel.send(attempt.agent_id, task_frame(due, self.rules.reply_to))
        except OutcomeUnknownError:
            logger.warning("task.publish_unknown", extra=_facts(due))
        except DeliveryError as error:
            await self._give_back(due, error)
        else:
            await self.books.ledger.mark_published(attempt)
            logger.info("task.published", extra=_facts(due))

    async def _give_back(self, due: Due, error: DeliveryError) -> None:
        attempt, code = due.attempt, error.error_code
        logger.warning("task.not_delivered", extra={**_facts(due), "error_code": code})
        await self.books.update(
            attempt.request_id,
            lambda state, now: not_delivered(state, now, attempt, code, self.assigner),
        )

    async def _look(self) -> None:
        while True:
            try:
                await self.claim()
            except UnavailableError:
                logger.warning("relay.ledger_unavailable")
            await self.clock.sleep(self.rules.look_every_s)

    async def claim(self) -> int:
        """Claim what is due at agents with room, and queue it; the number of attempts taken."""
        ledger = self.books.ledger
        agents = await ledger.due_agents()
        room = await self._room(agents) if agents else {}
        if not room:
            return 0
        claim_s = self.assigner.rules.claim_ms / 1000
        found = await ledger.claim_due(self.outbox.replica, room, claim_s)
        for due in found:
            self.outbox.put(due)
        return len(found)

    async def _room(self, agents: frozenset[AgentId]) -> Mapping[AgentId, int]:
        published = await self.books.ledger.published_attempts()
        room = {
            agent_id: min(self.capacities.capacity(agent_id) - published.get(agent_id, 0), self.outbox.room)
            for agent_id in agents
        }
        return {agent_id: count for agent_id, count in room.items() if count > 0}


def _facts(due: Due) -> dict[str, object]:
    return {
        "request_id": due.request.request_id,
        "task_id": due.task.task_id,
        "capability": due.task.capability,
        "agent_id": due.attempt.agent_id,
        "attempt": due.attempt.number,
    }
