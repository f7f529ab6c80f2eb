"""Confirmed publishes, noted in the ledger together with what comes next for their request.

A fast agent's result arrives before its publish is noted: both are then one change. What has no
company after a moment is noted by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dispatcher.dispatch.lifecycle.ledger import Change, Decide, Step
from dispatcher.dispatch.lifecycle.request import Attempt, AttemptStatus, RequestState
from dispatcher.identifiers import RequestId
from dispatcher.records import replace

Update = Callable[[RequestId, Decide], Awaitable[Change | None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Note:
    attempt: Attempt
    is_stored: asyncio.Future[bool]
    """Whether a change took it along; False where none came in time, or it failed."""

    def tell(self, *, is_stored: bool) -> None:
        if not self.is_stored.done():
            self.is_stored.set_result(is_stored)


class Publications:
    """Notes that wait for company, at most `wait_s` seconds each."""

    def __init__(self, update: Update, has_ended: Callable[[RequestId], bool], wait_s: float) -> None:
        self._update = update
        self._has_ended = has_ended
        self._wait_s = wait_s
        self._notes: dict[RequestId, list[_Note]] = {}

    async def note(self, attempt: Attempt) -> None:
        """Return once the publish is in the ledger; raises as `Ledger.update` does.

        A fast agent's result may have ended its request already: nothing is left to be noted then.
        """
        if self._has_ended(attempt.request_id):
            return
        loop = asyncio.get_running_loop()
        note = _Note(attempt, loop.create_future())
        self._notes.setdefault(attempt.request_id, []).append(note)
        timer = loop.call_later(self._wait_s, self._withdraw, note)
        try:
            is_stored = await note.is_stored
        finally:
            timer.cancel()
            self._withdraw(note)
        if not is_stored and not self._has_ended(attempt.request_id):
            await self._update(attempt.request_id, published([attempt]))

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """`Ledger.update`, which the publishes of the request that wait join; alone again where it fails."""
        notes = self._notes.pop(request_id, None)
        if notes is None:
            change = await self._update(request_id, decide)
        else:
            is_stored = False
            try:
                change = await self._update(request_id, published([n.attempt for n in notes], decide))
                is_stored = True
            finally:
                for note in notes:
                    note.tell(is_stored=is_stored)
        if change is not None and request_id in self._notes:
            self._drop_the_late(change)
        return change

    def _drop_the_late(self, change: Change) -> None:
        """What was confirmed while its attempt's result was being stored has nothing left to be noted."""
        due = {(a.task_id, a.number) for a in change.after.attempts if a.status is AttemptStatus.DUE}
        for note in list(self._notes[change.after.request.request_id]):
            if (note.attempt.task_id, note.attempt.number) not in due:
                note.tell(is_stored=True)

    def _withdraw(self, note: _Note) -> None:
        """Let a note that no change has taken go on by itself."""
        notes = self._notes.get(note.attempt.request_id, [])
        if note in notes:
            notes.remove(note)
            note.tell(is_stored=False)
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
    task_id, number = published.task_id, published.number
    deadline = next((t.deadline_ms for t in state.tasks if t.task_id == task_id), None)
    # Published again after it got lost, its time still runs: else it would never be given up.
    lapse = published.lapse_ms or now + published.timeout_ms
    lapse_ms = lapse if deadline is None else min(lapse, deadline)

    def publish(attempt: Attempt) -> Attempt:
        is_meant = attempt.number == number and attempt.task_id == task_id
        if not is_meant or attempt.status is not AttemptStatus.DUE:
            return attempt
        return replace(attempt, status=AttemptStatus.PUBLISHED, published_ms=now, lapse_ms=lapse_ms)

    return replace(state, attempts=tuple(map(publish, state.attempts)))
