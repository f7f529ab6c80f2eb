"""Clients that wait for a request to end, in this process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from dispatcher.clock import Clock
from dispatcher.dispatch.ledger import Ledger
from dispatcher.dispatch.request import RequestState, RequestStatus
from dispatcher.errors import OverloadedError, RequestError
from dispatcher.identifiers import RequestId

LOOK_EVERY_S = 1.0
"""A wake-up that got lost costs one look into the ledger after this time."""


class Waiters:
    """At most `limit` clients at once; beyond, `wait` raises OverloadedError."""

    def __init__(self, *, ledger: Ledger, clock: Clock, limit: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._limit = limit
        self._waiting: dict[RequestId, set[asyncio.Event]] = {}
        self._count = 0
        self._ended: dict[RequestId, RequestState] = {}
        self._released = False

    def notify(self, state: RequestState) -> None:
        """Hand a committed state to whoever waits for it here."""
        request_id = state.request.request_id
        if state.request.status is not RequestStatus.OPEN and request_id in self._waiting:
            self._ended[request_id] = state
            self.wake(request_id)

    def wake(self, request_id: RequestId) -> None:
        """Make whoever waits for the request look into the ledger."""
        for event in self._waiting.get(request_id, ()):
            event.set()

    def release(self) -> None:
        """Shutting down: nobody waits any longer; every `wait` returns the state as it stands."""
        self._released = True
        for request_id in self._waiting:
            self.wake(request_id)

    async def wait(self, request_id: RequestId, seconds: float) -> RequestState:
        """The request's state once it has ended, or as it stands after `seconds`.

        Cancelling the wait leaves the request running.
        """
        until = self._clock.monotonic() + seconds
        with self._registered(request_id) as event:
            while True:
                state = self._ended.get(request_id) or await self._ledger.read(request_id)
                if state is None:
                    raise RequestError(f"request {request_id!r} does not exist", code="not_found")
                remaining = until - self._clock.monotonic()
                has_ended = state.request.status is not RequestStatus.OPEN
                if has_ended or remaining <= 0 or self._released:
                    return state
                await self._next_look(event, min(remaining, LOOK_EVERY_S))

    @staticmethod
    async def _next_look(event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return
        event.clear()

    @contextmanager
    def _registered(self, request_id: RequestId) -> Iterator[asyncio.Event]:
        if self._count >= self._limit:
            raise OverloadedError("too many clients are waiting for answers", code="too_many_waiting")
        event = asyncio.Event()
        self._waiting.setdefault(request_id, set()).add(event)
        self._count += 1
        try:
            yield event
        finally:
            self._count -= 1
            waiting = self._waiting[request_id]
            waiting.discard(event)
            if not waiting:
                del self._waiting[request_id]
                self._ended.pop(request_id, None)
