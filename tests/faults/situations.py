"""Situations of the ledger around one task, numbered: what rules make of one is worked out once."""

from collections.abc import Callable
from typing import TypeVar, cast

from dispatcher.dispatch.lifecycle.ledger import Step
from dispatcher.dispatch.lifecycle.request import Attempt, RequestState

Made = TypeVar("Made", RequestState, Step)


class Situations:
    """Two states are in one situation where nothing tells them apart from their own now on."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[object, ...], int] = {}
        self._first: list[tuple[RequestState, int]] = []
        # By a state's id, which stays its own as the state is kept beside the number.
        self._by_id: dict[tuple[int, int], tuple[int, RequestState]] = {}
        self._made: dict[tuple[int, str], RequestState | Step] = {}

    def number(self, state: RequestState, now: int) -> int:
        """The situation's number, from 0 on in the order in which they come up."""
        place = (id(state), now)
        if place not in self._by_id:
            number = self._by_key.setdefault(_key(state, now), len(self._by_key))
            if number == len(self._first):
                self._first.append((state, now))
            self._by_id[place] = (number, state)
        return self._by_id[place][0]

    def first(self, number: int) -> tuple[RequestState, int]:
        """The first state that was in it, and its now; for all others there."""
        return self._first[number]

    def once(self, state: RequestState, now: int, what: str, make: Callable[[], Made]) -> Made:
        """What `make` makes of the state; asked again for the same event it is not made again."""
        key = (self.number(state, now), what)
        if key not in self._made:
            self._made[key] = make()
        return cast("Made", self._made[key])


def _key(state: RequestState, now: int) -> tuple[object, ...]:
    request, (task,) = state.request, state.tasks
    attempts = tuple(_attempt_key(attempt, now) for attempt in state.attempts)
    ends = (request.status, task.status, task.result_digest, task.idempotent)
    return ends, (task.deadline_ms or 0) - now, attempts


def _attempt_key(attempt: Attempt, now: int) -> tuple[object, ...]:
    times = (attempt.not_before_ms, attempt.claimed_until_ms, attempt.lapse_ms)
    ahead = tuple(None if time is None else max(time - now, 0) for time in times)
    sent = attempt.published_ms is not None
    return attempt.number, attempt.agent_id, attempt.status, attempt.claimed_by, ahead, sent
