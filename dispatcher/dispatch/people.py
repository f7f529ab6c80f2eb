"""What people do: parts handed over are told to them until the broker has them, and they answer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dispatcher.dispatch.lifecycle.handoff import NO_HANDOFFS, Handoff, handoff_frame
from dispatcher.dispatch.lifecycle.request import DecisionRecord, RequestState, TaskStatus
from dispatcher.errors import DeliveryError, RequestError
from dispatcher.identifiers import RequestId, TaskId
from dispatcher.protocol.handoff import HandoffFrame

logger = logging.getLogger(__name__)
BATCH = 100
"""Frames published per look; the rest waits for the next one."""


class HandoffRepository(Protocol):
    """Where parts that were handed over are kept; their rows come with the step that hands them over."""

    async def list(self, *, answered: bool, limit: int) -> Sequence[Handoff]:
        """Open ones, the oldest first, or answered ones, the latest answer first."""
        ...

    async def of_request(self, request_id: RequestId) -> Sequence[Handoff]:
        """All of one request."""
        ...

    async def find(self, task_id: TaskId) -> Handoff | None:
        """One of them."""
        ...

    async def answer(self, task_id: TaskId, answer: str, by: str) -> bool:
        """Keep the first answer; False, and nothing changed, where there is one already, or no handoff."""
        ...

    async def unpublished(self, limit: int) -> Sequence[Handoff]:
        """Open ones that no broker has confirmed, the oldest first."""
        ...

    async def mark_published(self, task_id: TaskId) -> None:
        """The broker has its frame."""
        ...


class RequestReads(Protocol):
    """What a frame is made from; the ledger."""

    async def read(self, request_id: RequestId) -> RequestState | None:
        """The committed state."""
        ...

    async def read_decisions(self, request_id: RequestId) -> tuple[DecisionRecord, ...]:
        """All decisions of a request."""
        ...


class PeopleQueue(Protocol):
    """The broker's side; people's own tools consume it."""

    async def prepare_people(self) -> None:
        """Make sure that the queue exists; raises UnavailableError without a broker."""
        ...

    async def tell_people(self, frame: HandoffFrame) -> None:
        """Return once the broker has the frame; raises DeliveryError otherwise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """One per replica. `queue` None: in one process people have the list alone."""

    repository: HandoffRepository
    reads: RequestReads
    queue: PeopleQueue | None

    async def list(self, *, answered: bool, limit: int) -> Sequence[Handoff]:
        """Open ones, the oldest first, or answered ones, the latest answer first."""
        return await self.repository.list(answered=answered, limit=limit)

    async def of(self, state: RequestState) -> Mapping[TaskId, Handoff]:
        """Those of a request, by task; nothing is asked for a request without any."""
        if not any(task.status is TaskStatus.HANDED_OFF for task in state.tasks):
            return NO_HANDOFFS
        found = await self.repository.of_request(state.request.request_id)
        return {one.task_id: one for one in found}

    async def answer(self, task_id: TaskId, answer: str, by: str) -> Handoff:
        """Keep a person's answer, the same one as often as it is told.

        Raises RequestError: `not_found`, `already_answered` where another one is kept.
        """
        is_new = await self.repository.answer(task_id, answer, by)
        kept = await self.repository.find(task_id)
        if kept is None:
            raise RequestError("Nothing of this id was handed over.", code="not_found")
        if kept.answer != answer:
            raise RequestError(f"It was answered by {kept.answered_by}.", code="already_answered")
        if is_new:
            logger.info("handoff.answered", extra={"task_id": task_id, "by": by})
        return kept

    async def publish(self) -> int:
        """Tell people what they were not told; how many parts that were.

        At least once: two replicas may tell the same, and a confirmation may get lost. What the broker does
        not take stays for the next time.
        """
        if self.queue is None:
            return 0
        waiting = await self.repository.unpublished(BATCH)
        if not waiting:
            return 0
        await self.queue.prepare_people()
        for told, handoff in enumerate(waiting):
            try:
                await self._publish(self.queue, handoff)
            except DeliveryError as error:
                logger.warning("handoff.not_published", extra={"reason": error.error_code})
                return told
        return len(waiting)

    async def _publish(self, queue: PeopleQueue, handoff: Handoff) -> None:
        state = await self.reads.read(handoff.request_id)
        if state is None:
            return  # deleted meanwhile, its handoff with it
        task = next(task for task in state.tasks if task.task_id == handoff.task_id)
        decisions = await self.reads.read_decisions(handoff.request_id)
        first = next((one.document for one in decisions if one.position == task.position), None)
        await queue.tell_people(handoff_frame(state, task, first))
        await self.repository.mark_published(handoff.task_id)
        logger.info("handoff.published", extra={"task_id": handoff.task_id})
