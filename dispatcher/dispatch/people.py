"""What people do: parts handed over are told to them until the broker has them, and they answer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dispatcher.dispatch.admission import OpenHandoffs
from dispatcher.dispatch.lifecycle.handoff import NO_HANDOFFS, Handoff, handoff_frame
from dispatcher.dispatch.lifecycle.request import DecisionRecord, RequestState, TaskStatus
from dispatcher.errors import ConfigurationError, DeliveryError, RequestError, TooLargeError
from dispatcher.identifiers import RequestId, TaskId
from dispatcher.protocol.handoff import HandoffFrame

logger = logging.getLogger(__name__)
BATCH = 100
"""Frames published per look; the rest waits for the next one."""
CLAIM_S = 60
"""How long what one replica is publishing is left to it. A copy more is the worst where that is too short."""
_NO_FRAME = (ValueError, LookupError, TypeError, AttributeError)
"""What making a frame ends with where older rows hold what frames take no more, or have another form."""


class HandoffRepository(Protocol):
    """Where parts that were handed over are kept; their rows come with the step that hands them over."""

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        """Open ones, the oldest first, or answered ones, the latest answer first; those behind `after`."""
        ...

    async def count_open(self) -> int:
        """How many nobody has answered."""
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

    async def claim_unpublished(self, limit: int) -> Sequence[Handoff]:
        """Open ones that no broker has confirmed, the oldest first; nobody else gets them for CLAIM_S."""
        ...

    async def give_back(self, task_ids: Sequence[TaskId]) -> None:
        """They were not published: whoever looks next gets them."""
        ...

    async def mark_published(self, task_id: TaskId) -> None:
        """The broker has its frame."""
        ...

    async def mark_unpublishable(self, task_id: TaskId, reason: str) -> None:
        """It is not found by `claim_unpublished` any more."""
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
        """Make sure that the queue exists.

        Raises UnavailableError without a broker and ConfigurationError where it exists otherwise.
        """
        ...

    async def tell_people(self, frame: HandoffFrame) -> None:
        """Return once the broker has the frame; raises DeliveryError otherwise."""
        ...


@dataclass(slots=True, kw_only=True)
class QueueState:
    """What keeps people from being told until somebody changes it, in one sentence; None: nothing."""

    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """One per replica. `queue` None: in one process people have the list alone."""

    repository: HandoffRepository
    reads: RequestReads
    queue: PeopleQueue | None
    waiting: OpenHandoffs = field(default_factory=OpenHandoffs)
    queue_state: QueueState = field(default_factory=QueueState)

    def problem(self) -> str | None:
        """Why people are told nothing over the broker although it is there, in one sentence."""
        return self.queue_state.problem

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        """Open ones, the oldest first, or answered ones, the latest answer first; those behind `after`."""
        return await self.repository.list(answered=answered, limit=limit, after=after)

    async def count(self) -> None:
        """Bring what admission knows up to date."""
        self.waiting.begin_count()
        self.waiting.set_count(await self.repository.count_open())

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

        At least once: a confirmation may get lost. What the broker does not take stays for the next time;
        what can't be told at all is in the list alone, and keeps nothing behind it waiting. A queue that
        exists otherwise is a `problem` until it is gone, and nothing is claimed for it.
        """
        if self.queue is None:
            return 0
        if self.queue_state.problem is not None and not await self._prepare(self.queue):
            return 0
        waiting = await self.repository.claim_unpublished(BATCH)
        if not waiting:
            return 0
        return await self._publish_all(self.queue, waiting)

    async def _publish_all(self, queue: PeopleQueue, waiting: Sequence[Handoff]) -> int:
        told, left = 0, [one.task_id for one in waiting]
        try:
            if await self._prepare(queue):
                for handoff in waiting:
                    told += await self._publish(queue, handoff)
                    left.remove(handoff.task_id)
        except DeliveryError as error:
            logger.warning("handoff.not_published", extra={"reason": error.error_code})
        finally:
            if left:
                await self.repository.give_back(left)
        return told

    async def _prepare(self, queue: PeopleQueue) -> bool:
        """Whether the queue is there as it should be; raises UnavailableError without a broker."""
        problem = None
        try:
            await queue.prepare_people()
        except ConfigurationError as error:
            problem = error.message
        if problem is not None and problem != self.queue_state.problem:
            logger.error("handoff.queue_unusable", extra={"why": problem})
        self.queue_state.problem = problem
        return problem is None

    async def _publish(self, queue: PeopleQueue, handoff: Handoff) -> bool:
        """Whether people were told; raises DeliveryError where the broker is what is in the way."""
        try:
            return await self._tell(queue, handoff)
        except TooLargeError as error:
            reason = error.error_code
        except _NO_FRAME as error:
            reason = type(error).__name__
        extra = {"task_id": handoff.task_id, "reason": reason}
        logger.error("handoff.unpublishable", extra=extra)
        await self.repository.mark_unpublishable(handoff.task_id, reason)
        return False

    async def _tell(self, queue: PeopleQueue, handoff: Handoff) -> bool:
        state = await self.reads.read(handoff.request_id)
        if state is None:
            return False  # deleted meanwhile, its handoff with it
        decisions = await self.reads.read_decisions(handoff.request_id)
        await queue.tell_people(handoff_frame(state, handoff, decisions))
        await self.repository.mark_published(handoff.task_id)
        logger.info("handoff.published", extra={"task_id": handoff.task_id})
        return True
