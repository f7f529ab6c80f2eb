"""Following a request while it happens: each look into the ledger tells what is new since the last."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from dispatcher.clock import Clock
from dispatcher.dispatch.lifecycle.cursor import Cursor, Mark, Stage
from dispatcher.dispatch.lifecycle.events import (
    Event,
    Look,
    Progress,
    awaits_decision,
    events_after,
    progress_events,
)
from dispatcher.dispatch.lifecycle.ledger import Ledger
from dispatcher.dispatch.lifecycle.request import PartialRecord, RequestState, Task, TaskStatus
from dispatcher.dispatch.waiters import Waiters
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import RequestId, TaskId

logger = logging.getLogger(__name__)
PAGE = 32
"""Partials of one task read at a time: all that a reader who takes nothing makes us hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Reads only when its reader asks for more: a slow one costs no memory."""

    ledger: Ledger
    waiters: Waiters
    clock: Clock

    def place(self) -> AbstractContextManager[None]:
        """A place among the clients that wait; entering raises OverloadedError where all are taken."""
        return self.waiters.place()

    async def follow(
        self, request_id: RequestId, cursor: Cursor, quiet_s: float
    ) -> AsyncGenerator[tuple[Event, ...]]:
        """What happens after the cursor, as it happens, up to the answer; nothing after a complete one.

        An empty tuple says that nothing happened for `quiet_s` seconds. Ends early, after an empty
        tuple, when this replica is shutting down or the request is deleted: the reader goes on from
        its last event elsewhere. Where the ledger can't be reached the first look raises
        UnavailableError, and later ones are tried again.
        """
        if cursor.is_complete:
            return
        told_at = self.clock.monotonic()
        shown: Progress = {}
        with self.waiters.watched(request_id) as bell:
            look = await self._look(request_id, cursor)
            while look is not None:
                events, cursor = events_after(cursor, look)
                progress, shown = progress_events(cursor, look, shown)
                now = self.clock.monotonic()
                if events or progress or now - told_at >= quiet_s:
                    told_at = now
                    yield (*events, *progress)
                if cursor.is_complete:
                    return
                if self.waiters.is_released:
                    break
                if not (events and look.cut):
                    await self.waiters.next_look(bell, quiet_s)
                look = await self._next_look(request_id, cursor, look)
        yield ()

    async def _next_look(self, request_id: RequestId, cursor: Cursor, last: Look) -> Look | None:
        try:
            return await self._look(request_id, cursor)
        except UnavailableError:
            logger.warning("watch.not_read", extra={"request_id": request_id})
            return last

    async def _look(self, request_id: RequestId, cursor: Cursor) -> Look | None:
        """The state is read first, so that what it says has ended can have no more records."""
        state = await self.ledger.read(request_id)
        if state is None:
            return None
        due = awaits_decision(cursor, state)
        pages = await self._pages(state, cursor)
        return Look(
            state=state,
            decisions=await self.ledger.read_decisions(request_id) if due else (),
            partials=pages,
            cut=frozenset(task_id for task_id, page in pages.items() if len(page) == PAGE),
        )

    async def _pages(self, state: RequestState, cursor: Cursor) -> Mapping[TaskId, tuple[PartialRecord, ...]]:
        return {
            task.task_id: await self.ledger.read_partials(
                state.request.request_id, task.task_id, (mark.attempt, mark.sequence), PAGE
            )
            for task, mark in zip(state.tasks, cursor.marks, strict=True)
            if _may_have_partials(state, task, mark)
        }


def _may_have_partials(state: RequestState, task: Task, mark: Mark) -> bool:
    is_told = mark.stage is Stage.ENDED or task.status is TaskStatus.WAITING
    return not is_told and bool(state.attempts_of(task.task_id))
