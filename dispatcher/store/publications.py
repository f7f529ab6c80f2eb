"""Confirmed publishes, noted in the ledger together with what comes next for their request.

A fast agent's result arrives before its publish is noted: both are then one change. What has no
company after a moment is noted by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from dispatcher.dispatch.ledger import Change, Decide, Step
from dispatcher.dispatch.request import Attempt, AttemptStatus, RequestState
from dispatcher.identifiers import RequestId

Update = Callable[[RequestId, Decide], Awaitable[Change | None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    attempt: Attempt
    taken: asyncio.Event
    is_stored: asyncio.Future[bool]


class Publications:
    """Notes that wait for company, at most `wait_s` seconds each."""

    def __init__(self, update: Update, wait_s: float) -> None:
        self._update = update
        self._wait_s = wait_s
        self._notes: dict[RequestId, list[_Note]] = {}

    async def note(self, attempt: Attempt) -> None:
        """Return once the publish is in the ledger; raises as `Ledger.update` does."""
        note = _Note(attempt, asyncio.Event(), asyncio.get_running_loop().create_future())
        self._notes.setdefault(attempt.request_id, []).append(note)
        try:
            async with asyncio.timeout(self._wait_s):
                await note.taken.wait()
        except TimeoutError:
            pass
        finally:
            self._withdraw(note)
        if not (note.taken.is_set() and await note.is_stored):
            await self._update(attempt.request_id, published([attempt]))

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """`Ledger.update`, which the publishes of the request that wait join; alone again where it fails."""
        notes = self._notes.pop(request_id, None)
        if notes is None:
            return await self._update(request_id, decide)
        for note in notes:
            note.taken.set()
        is_stored = False
        try:
            change = await self._update(request_id, published([n.attempt for n in notes], decide))
            is_stored = True
        finally:
            for note in notes:
                if not note.is_stored.done():
                    note.is_stored.set_result(is_stored)
        return change

    def _withdraw(self, note: _Note) -> None:
        notes = self._notes.get(note.attempt.request_id, [])
        if note in notes:
            notes.remove(note)
            if not notes:
                del self._notes[note.attempt.request_id]


def published(attempts: Sequence[Attempt], then: Decide | None = None) -> Decide:
    """The rule that turns DUE attempts into PUBLISHED ones whose time runs from now, then runs another."""

    def decide(state: RequestState, now: int) -> Step:
        for attempt in attempts:
            state = _publish(state, attempt, now)
        return then(state, now) if then else Step(state=state)

    return decide


def _publish(state: RequestState, published: Attempt, now: int) -> RequestState:
    key = (published.task_id, published.number)
    deadline = next((t.deadline_ms for t in state.tasks if t.task_id == published.task_id), None)
    # Published again after it got lost, its time still runs: else it would never be given up.
    lapse = published.lapse_ms or now + published.timeout_ms

    def publish(attempt: Attempt) -> Attempt:
        if (attempt.task_id, attempt.number) != key or attempt.status is not AttemptStatus.DUE:
            return attempt
        return replace(
            attempt,
            status=AttemptStatus.PUBLISHED,
            published_ms=now,
            lapse_ms=lapse if deadline is None else min(lapse, deadline),
        )

    return replace(state, attempts=tuple(map(publish, state.attempts)))
