"""Commits changes to the ledger and sets off, in one place, what follows from them."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dispatcher.channel.channel import Channel
from dispatcher.dispatch.lifecycle.expire import release
from dispatcher.dispatch.lifecycle.ledger import Change, Decide, KeyedRequest, Ledger, Offer
from dispatcher.dispatch.lifecycle.request import NOT_REACHED, Attempt, AttemptStatus, RequestStatus
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.waiters import Waiters
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import AgentId, Capability, RequestId
from dispatcher.protocol.frames import CancelFrame

logger = logging.getLogger(__name__)
_GIVEN_UP = (AttemptStatus.ABANDONED, AttemptStatus.LAPSED)
_RAN = (AttemptStatus.SUCCEEDED, AttemptStatus.FAILED, AttemptStatus.LAPSED)


class LoadBook(Protocol):
    """Where this replica counts what ended at the agents; the registry's live view."""

    def add_open(self, agent_id: AgentId, delta: int) -> None:
        """Change the number of attempts open at an agent."""
        ...

    def record_outcome(self, agent_id: AgentId, capability: Capability, *, succeeded: bool) -> None:
        """Count one ended attempt."""
        ...

    def has_waiting(self, agent_id: AgentId) -> bool:
        """Whether more attempts are open at the agent than it runs at once."""
        ...

    def pace(self, agent_id: AgentId) -> float | None:
        """Tasks the agent takes in any second; None for one without such a limit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeper:
    """Every change of a request goes through here: commit first, then publish, count and wake.

    What follows a commit is not needed for correctness: after a crash the relay finds
    unpublished attempts, waiters look into the ledger, and counts are refreshed.
    """

    ledger: Ledger
    outbox: Outbox
    loads: LoadBook
    waiters: Waiters
    channel: Channel

    async def accept(self, offer: Offer) -> Change | KeyedRequest:
        """`Ledger.accept`, followed up."""
        since = self.outbox.now()
        outcome = await self.ledger.accept(offer)
        if isinstance(outcome, Change):
            facts = {"request_id": offer.request_id, "intents": len(outcome.after.intents)}
            logger.info("request.accepted", extra=facts)
            await self._follow_up(outcome, since)
        return outcome

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """`Ledger.update`, followed up."""
        since = self.outbox.now()
        change = await self.ledger.update(request_id, decide)
        if change is not None:
            await self._follow_up(change, since)
        return change

    async def mark_published(self, attempt: Attempt) -> None:
        """`Ledger.mark_published`, followed up."""
        await self.ledger.mark_published(attempt)
        self.waiters.touch(attempt.request_id)

    async def release(self, attempt: Attempt) -> None:
        """Give back a claim of this replica that was not used; best effort, for it runs out by itself."""
        replica = self.outbox.replica
        try:
            await self.ledger.update(attempt.request_id, partial(release, attempt=attempt, replica=replica))
        except UnavailableError:
            logger.warning("task.not_released", extra={"task_id": attempt.task_id})

    async def announce(self, change: Change) -> None:
        """Let the replica that accepted the request look at it, if it is another one; best effort."""
        request = change.after.request
        if request.replica != self.outbox.replica:
            await self.channel.wake(request.replica, request.request_id)

    async def _follow_up(self, change: Change, since: float) -> None:
        self.waiters.touch(change.after.request.request_id)
        new = change.new_attempts()
        for attempt in new:
            self._note_decided(change, attempt)
        for attempt in ended_attempts(change):
            if self.loads.has_waiting(attempt.agent_id):
                self.outbox.poked.set()
            self.loads.add_open(attempt.agent_id, -1)
            self._count_outcome(change, attempt)
        if new:
            await self._send(change, new, since)
        for attempt in abandoned_attempts(change):
            await self._stop(attempt)
        if has_ended(change):
            request = change.after.request
            logger.info(
                "request.ended", extra={"request_id": request.request_id, "status": str(request.status)}
            )
            self.waiters.notify(change.after)
            await self.announce(change)

    async def _send(self, change: Change, new: Sequence[Attempt], since: float) -> None:
        for attempt in self.outbox.offer(change, new, since):
            await self.release(attempt)

    def _note_decided(self, change: Change, attempt: Attempt) -> None:
        """What goes out from here at once is logged when it has."""
        if attempt.claimed_by != self.outbox.replica:
            logger.info("task.decided", extra=_facts(change, attempt))
        if self.loads.pace(attempt.agent_id) is not None:
            self.outbox.poked.set()

    def _count_outcome(self, change: Change, attempt: Attempt) -> None:
        ran = attempt.status in _RAN
        not_reached = attempt.status is AttemptStatus.NOT_STARTED and attempt.error_code in NOT_REACHED
        task = next(t for t in change.after.tasks if t.task_id == attempt.task_id)
        if (ran or not_reached) and task.capability is not None:
            succeeded = attempt.status is AttemptStatus.SUCCEEDED
            self.loads.record_outcome(attempt.agent_id, task.capability, succeeded=succeeded)

    async def _stop(self, attempt: Attempt) -> None:
        """Tell the agent that nobody waits for this any more; best effort."""
        frame = CancelFrame(
            request_id=attempt.request_id,
            task_id=attempt.task_id,
            agent_id=attempt.agent_id,
            reason=attempt.error_code or "task_ended",
        )
        await self.channel.cancel(attempt.agent_id, frame)


def has_ended(change: Change) -> bool:
    """Whether this change ended the request."""
    was_open = change.before is None or change.before.request.status is RequestStatus.OPEN
    return was_open and change.after.request.status is not RequestStatus.OPEN


def ended_attempts(change: Change) -> Iterator[Attempt]:
    """Attempts that were open before the change and are not after it."""
    if change.before is None:
        return
    was_open = {(a.task_id, a.number) for a in change.before.attempts if a.status.is_open}
    for attempt in change.after.attempts:
        if (attempt.task_id, attempt.number) in was_open and not attempt.status.is_open:
            yield attempt


def abandoned_attempts(change: Change) -> Iterator[Attempt]:
    """Attempts of tasks that this change ended although their agent may be at them, or get them yet."""
    if change.before is None:
        return
    given_up = [a for a in change.after.attempts if a.status in _GIVEN_UP]
    if not given_up:
        return
    were_open = {task.task_id for task in change.before.tasks if not task.status.is_terminal}
    ended = {t.task_id for t in change.after.tasks if t.status.is_terminal and t.task_id in were_open}
    for attempt in given_up:
        if attempt.task_id in ended and attempt.may_have_run:
            yield attempt


def _facts(change: Change, attempt: Attempt) -> dict[str, object]:
    task = next(t for t in change.after.tasks if t.task_id == attempt.task_id)
    return {
        "request_id": attempt.request_id,
        "task_id": attempt.task_id,
        "capability": task.capability,
        "agent_id": attempt.agent_id,
        "attempt": attempt.number,
        "similarity": round(task.similarity, 3),
        "score": task.score and round(task.score, 3),
    }
