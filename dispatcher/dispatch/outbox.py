"""Attempts on their way out of this replica: the relay's bounded queue."""

import asyncio
import logging

from dispatcher.dispatch.ledger import Change, Due
from dispatcher.dispatch.task_frame import due_of
from dispatcher.identifiers import ReplicaId

logger = logging.getLogger(__name__)


class Outbox:
    """At most `limit` attempts; one that finds it full stays in the ledger, where its claim runs out."""

    def __init__(self, *, replica: ReplicaId, limit: int) -> None:
        self.replica = replica
        self._queue: asyncio.Queue[Due] = asyncio.Queue(maxsize=limit)

    def offer(self, change: Change) -> None:
        """Take the attempts that a commit of this replica created and claimed."""
        for attempt in change.new_attempts():
            if attempt.claimed_by == self.replica:
                self.put(due_of(change, attempt))

    def put(self, due: Due) -> None:
        """Queue one claimed attempt."""
        try:
            self._queue.put_nowait(due)
        except asyncio.QueueFull:
            logger.warning("outbox.full", extra={"task_id": due.task.task_id})

    async def take(self) -> Due:
        """The next attempt to publish, as soon as there is one."""
        return await self._queue.get()

    @property
    def room(self) -> int:
        """How many more it takes."""
        return self._queue.maxsize - self._queue.qsize()
