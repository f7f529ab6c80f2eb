"""Attempts on their way out of this replica: the relay's bounded queue."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from dispatcher.clock import Clock
from dispatcher.dispatch.lifecycle.ledger import AttemptKey, Change, Due
from dispatcher.dispatch.lifecycle.request import Attempt
from dispatcher.dispatch.lifecycle.task_frame import due_of
from dispatcher.identifiers import ReplicaId

logger = logging.getLogger(__name__)


class Outbox:
    """At most `limit` attempts, each once; one that finds it full stays in the ledger."""

    def __init__(self, *, replica: ReplicaId, limit: int, clock: Clock) -> None:
        self.replica = replica
        self._clock = clock
        self._queue: asyncio.Queue[tuple[Due, float]] = asyncio.Queue(maxsize=limit)
        self._held: set[AttemptKey] = set()
        self.poked = asyncio.Event()
        """Set when the ledger holds attempts that could go out now: the relay looks at once."""

    def now(self) -> float:
        """The monotonic time that `offer` and `put` count from."""
        return self._clock.monotonic()

    def offer(self, change: Change, new: Iterable[Attempt], since: float) -> Sequence[Attempt]:
        """Take those of its new attempts that a commit of this replica claimed; those that found no place.

        Budget and claim run from `since`, a time before the commit began: it may have taken long.
        """
        ours = [attempt for attempt in new if attempt.claimed_by == self.replica]
        return [one for one in ours if not self.put(due_of(change.after, one, change.now_ms), since)]

    def put(self, due: Due, since: float) -> bool:
        """Queue one attempt that was claimed no earlier than `since`, unless it is queued already.

        False where there is no place for it: its claim is to be given back.
        """
        key = (due.attempt.task_id, due.attempt.number)
        if key in self._held:
            return True
        try:
            self._queue.put_nowait((due, since))
        except asyncio.QueueFull:
            logger.warning("outbox.full", extra={"task_id": due.task.task_id})
            return False
        self._held.add(key)
        return True

    async def take(self) -> tuple[Due, int]:
        """The next attempt to publish, and for how many milliseconds it has been claimed."""
        due, queued_at = await self._queue.get()
        self._held.discard((due.attempt.task_id, due.attempt.number))
        return due, round((self._clock.monotonic() - queued_at) * 1000)

    @property
    def room(self) -> int:
        """How many more it takes."""
        return self._queue.maxsize - self._queue.qsize()
