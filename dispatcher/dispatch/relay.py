"""The relay: publishes due attempts from the ledger's outbox.

Fresh attempts of this replica arrive through the outbox; everything else (other replicas'
left-overs, delayed retries, work for agents that were full) is claimed from the ledger.
Publishing twice is harmless (I2), not publishing is not: what fails stays due.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dispatcher.channel.channel import Channel
from dispatcher.clock import Clock
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.expire import move_on, not_delivered
from dispatcher.dispatch.lifecycle.ledger import Due
from dispatcher.dispatch.lifecycle.request import Task
from dispatcher.dispatch.lifecycle.task_frame import task_frame
from dispatcher.dispatch.outbox import Outbox
from dispatcher.errors import DeliveryError, NotSentError, OutcomeUnknownError
from dispatcher.identifiers import AgentId, CallerId, Capability
from dispatcher.observe.supervise import every

logger = logging.getLogger(__name__)


class CapacityBook(Protocol):
    """How much an agent's live instances run at once; the registry's live view."""

    def capacity(self, agent_id: AgentId) -> int:
        """Tasks the agent's live instances take at once; 0 for one without live instances."""
        ...

    def pace(self, agent_id: AgentId) -> float | None:
        """Tasks the agent takes in any second (`max_qps`); None for one without such a limit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRules:
    """`publishers` sends are under way at a time; the ledger is looked at every `look_every_s` seconds.

    An attempt that was queued for `stale_ms` or longer is left to the ledger: by the time its send
    ended, its claim could be over. Of an agent that is gone, `moved_at_once` attempts are moved
    per look. Where an agent with waiting work has room again the look comes at once, but not sooner
    than `pause_s` after the one before.
    """

    reply_to: str
    publishers: int = 64
    look_every_s: float = 0.5
    stale_ms: int = 4_000
    moved_at_once: int = 32
    pause_s: float = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """One per replica. `grants` answers for a caller now: what was revoked is not sent (I6)."""

    outbox: Outbox
    books: Bookkeeper
    channel: Channel
    assigner: Assigner
    capacities: CapacityBook
    grants: Callable[[CallerId], frozenset[Capability] | None]
    clock: Clock
    rules: RelayRules

    async def run(self) -> None:
        """Publish until cancelled; a failing send or look is logged and the next one comes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(every(self.clock, self.rules.pause_s, "relay", self._look))
            for _ in range(self.rules.publishers):
                group.create_task(every(self.clock, 0, "publish", self.publish_next))

    async def publish_next(self) -> None:
        """Publish one attempt from the outbox as soon as there is one."""
        due, queued_ms = await self.outbox.take()
        frame = task_frame(due, self.rules.reply_to, queued_ms)
        if queued_ms >= self.rules.stale_ms or frame.budget_ms == 0:
            logger.warning("task.stale", extra=_facts(due))
            await self.books.release(due.attempt)
            return
        if not self._is_granted(due):
            await self._give_back(due, "unauthorised")
            return
        try:
            await self.channel.send(due.attempt.agent_id, frame, bound=_is_bound(due))
        except NotSentError:
            logger.warning("task.not_sent", extra=_facts(due))
            await self.books.release(due.attempt)
        except OutcomeUnknownError:
            logger.warning("task.publish_unknown", extra=_facts(due))
        except DeliveryError as error:
            await self._give_back(due, error.error_code)
        else:
            await self.books.mark_published(due.attempt)
            logger.info("task.published", extra={**_facts(due), **_scores(due.task)})

    def _is_granted(self, due: Due) -> bool:
        grants = self.grants(due.request.caller)
        return grants is None or due.task.capability in grants

    async def _give_back(self, due: Due, code: str) -> None:
        attempt = due.attempt
        logger.warning("task.not_delivered", extra={**_facts(due), "error_code": code})
        await self.books.update(
            attempt.request_id,
            lambda state, now: not_delivered(state, now, attempt, code, self.assigner),
        )

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(self.rules.look_every_s):
                await self.outbox.poked.wait()
        except TimeoutError:
            pass
        self.outbox.poked.clear()
        await self.claim()

    async def claim(self) -> int:
        """Claim what is due at agents with room, and queue it; the number of attempts taken.

        What waits for an agent that is gone is given to another one. Nothing is claimed while the
        channel can't send.
        """
        ledger = self.books.ledger
        agents = await ledger.due_agents() if self.channel.is_ready() else frozenset()
        room = await self._room(agents) if agents else {}
        if not room:
            return 0
        paces = {agent: pace for agent in room if (pace := self.capacities.pace(agent)) is not None}
        since = self.outbox.now()
        found = await ledger.claim_due(
            self.outbox.replica, room, self.assigner.rules.claim_ms / 1000, paces=paces
        )
        gone: list[Due] = []
        unplaced: list[Due] = []
        for due in found:
            if not self.capacities.capacity(due.attempt.agent_id):
                gone.append(due)
            elif not self.outbox.put(due, since):
                unplaced.append(due)
        await asyncio.gather(*map(self._move, gone), *(self.books.release(due.attempt) for due in unplaced))
        return len(found)

    async def _move(self, due: Due) -> None:
        attempt = due.attempt
        await self.books.update(
            attempt.request_id, lambda state, now: move_on(state, now, attempt, self.assigner)
        )

    async def _room(self, agents: frozenset[AgentId]) -> Mapping[AgentId, int]:
        published = await self.books.ledger.published_attempts()
        places, room = self.outbox.room, dict[AgentId, int]()
        for agent_id in sorted(agents):
            capacity = self.capacities.capacity(agent_id)
            if not capacity:
                room[agent_id] = self.rules.moved_at_once
            elif (free := min(capacity - published.get(agent_id, 0), places)) > 0:
                room[agent_id] = free
                places -= free
        return room


def _is_bound(due: Due) -> bool:
    """Whether nobody but its agent may have it: it may have been sent before, and must not run twice (I2).

    Publishing is noted after it happened, and a replica may die in between. Its claim tells of that: it
    was stored before the attempt was sent, and goes away only unused (`release`, `move_on`) or once the
    publish is noted. Whoever claims what still bears a claim sets `published_ms` in the same statement
    (`Ledger.claim_due`), so here it covers every claim but ours, which has sent nothing yet.
    """
    return due.attempt.published_ms is not None and not due.task.idempotent


def _facts(due: Due) -> dict[str, object]:
    return {
        "request_id": due.request.request_id,
        "task_id": due.task.task_id,
        "capability": due.task.capability,
        "agent_id": due.attempt.agent_id,
        "attempt": due.attempt.number,
    }


def _scores(task: Task) -> dict[str, object]:
    return {"similarity": round(task.similarity, 3), "score": task.score and round(task.score, 3)}
