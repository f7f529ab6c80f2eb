"""Clients that wait for a request to end, or watch it, in this process."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from dispatcher.clock import Clock
from dispatcher.dispatch.lifecycle.ledger import Ledger
from dispatcher.dispatch.lifecycle.request import RequestState, RequestStatus
from dispatcher.dispatch.lifecycle.weight import weight_of
from dispatcher.errors import OverloadedError, RequestError
from dispatcher.identifiers import RequestId

LOOK_EVERY_S = 1.0
"""A wake-up that got lost costs one look into the ledger after this time."""
EXPECTED = 1024
"""Requests remembered between `expect` and `wait`; of one forgotten the ledger tells."""
HELD_BYTES = 8_000_000
"""What the states of those that ended meanwhile may take in memory, all together."""
Bells = dict[RequestId, set[asyncio.Event]]


class Waiters:
    """At most `limit` clients at once; beyond, `place` and `wait` raise OverloadedError."""

    def __init__(self, *, ledger: Ledger, clock: Clock, limit: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._limit = limit
        self._waiting: Bells = {}
        self._watching: Bells = {}
        self._count = 0
        self._ended: dict[RequestId, RequestState] = {}
        self._expected: OrderedDict[RequestId, tuple[RequestState | None, int]] = OrderedDict()
        self._held_bytes = 0
        self._released = False

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return self._count

    @property
    def is_released(self) -> bool:
        """Whether nobody is to wait any longer."""
        return self._released

    def expect(self, request_id: RequestId) -> None:
        """Prepare for a request that is about to be accepted, so that `wait` needs no look at first."""
        self._expected[request_id] = (None, 0)
        if len(self._expected) > EXPECTED:
            self._collect(next(iter(self._expected)))

    @property
    def held_bytes(self) -> int:
        """About how much memory the states take that nobody has collected yet."""
        return self._held_bytes

    def _collect(self, request_id: RequestId) -> RequestState | None:
        state, weight = self._expected.pop(request_id, (None, 0))
        self._held_bytes -= weight
        return state

    def _hold(self, state: RequestState) -> None:
        """Keep it for whoever comes for it; where there is no room the ledger has to tell."""
        weight = weight_of(state)
        self._collect(state.request.request_id)
        if self._held_bytes + weight <= HELD_BYTES:
            self._expected[state.request.request_id] = (state, weight)
            self._held_bytes += weight

    def notify(self, state: RequestState) -> None:
        """Hand a committed state to whoever waits for it here; who watches is told by `touch`."""
        request_id = state.request.request_id
        if state.request.status is RequestStatus.OPEN:
            return
        if request_id in self._expected:
            self._hold(state)
        if bells := self._waiting.get(request_id):
            self._ended[request_id] = state
            for bell in bells:
                bell.set()

    def touch(self, request_id: RequestId) -> None:
        """Make whoever watches the request look into the ledger; who waits for its end sleeps on."""
        for bell in self._watching.get(request_id, ()):
            bell.set()

    def wake(self, request_id: RequestId) -> None:
        """Make whoever waits for the request or watches it look into the ledger."""
        self.touch(request_id)
        self._collect(request_id)
        for bell in self._waiting.get(request_id, ()):
            bell.set()

    def release(self) -> None:
        """Shutting down: nobody waits any longer; every `wait` returns the state as it stands."""
        self._released = True
        for request_id in (*self._waiting, *self._watching):
            self.wake(request_id)

    async def wait(self, request_id: RequestId, seconds: float) -> RequestState:
        """The request's state once it has ended, or as it stands after `seconds`.

        Cancelling the wait leaves the request running.
        """
        until = self._clock.monotonic() + seconds
        self._take_place()
        bell = _hang(self._waiting, request_id)
        try:
            is_open = request_id in self._expected
            if ended := self._collect(request_id):
                return ended
            if is_open and seconds > 0 and not self._released:
                await self.next_look(bell, seconds)
            return await self._look(request_id, bell, until)
        finally:
            if _take_down(self._waiting, request_id, bell):
                self._ended.pop(request_id, None)
            self._count -= 1

    async def _look(self, request_id: RequestId, bell: asyncio.Event, until: float) -> RequestState:
        while True:
            state = self._ended.get(request_id) or await self._ledger.read(request_id)
            if state is None:
                raise RequestError(f"request {request_id!r} does not exist", code="not_found")
            remaining = until - self._clock.monotonic()
            has_ended = state.request.status is not RequestStatus.OPEN
            if has_ended or remaining <= 0 or self._released:
                return state
            await self.next_look(bell, remaining)

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the `limit` places; raises OverloadedError `too_many_waiting` where all are taken."""
        self._take_place()
        try:
            yield
        finally:
            self._count -= 1

    def _take_place(self) -> None:
        if self._count >= self._limit:
            raise OverloadedError("too many clients are waiting for answers", code="too_many_waiting")
        self._count += 1

    @contextmanager
    def watched(self, request_id: RequestId) -> Iterator[asyncio.Event]:
        """A bell that rings at every change of the request that is committed here."""
        bell = _hang(self._watching, request_id)
        try:
            yield bell
        finally:
            _take_down(self._watching, request_id, bell)

    @staticmethod
    async def next_look(bell: asyncio.Event, seconds: float = LOOK_EVERY_S) -> None:
        """Return when the bell rings, which it does by itself when it is time to look without that."""
        timer = asyncio.get_running_loop().call_later(min(seconds, LOOK_EVERY_S), bell.set)
        try:
            await bell.wait()
        finally:
            timer.cancel()
        bell.clear()


def _hang(bells: Bells, request_id: RequestId) -> asyncio.Event:
    bell = asyncio.Event()
    bells.setdefault(request_id, set()).add(bell)
    return bell


def _take_down(bells: Bells, request_id: RequestId, bell: asyncio.Event) -> bool:
    """Whether it was the request's last one."""
    hung = bells[request_id]
    hung.discard(bell)
    if not hung:
        del bells[request_id]
    return not hung
