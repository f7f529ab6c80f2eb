"""Open requests as this replica stored them last, so that their next change needs no reading."""

from collections import OrderedDict
from typing import NamedTuple

from dispatcher.dispatch.lifecycle.request import AttemptStatus, RequestState, RequestStatus
from dispatcher.dispatch.lifecycle.weight import weight_of
from dispatcher.identifiers import RequestId

NEVER_MS = 2**62
RECENT_BYTES = 16_000_000


class Stored(NamedTuple):
    """A committed state and how many changes had made it."""

    state: RequestState
    version: int

    @property
    def claimed_until_ms(self) -> int:
        """Until when every attempt that is due is claimed; the end of time where none is due."""
        due = [one for one in self.state.attempts if one.status is AttemptStatus.DUE]
        return min([one.claimed_until_ms or 0 for one in due], default=NEVER_MS)


class RecentStates:
    """At most `limit` open requests of `max_bytes` in all; the one that was used longest ago gives way.

    What is here may be out of date, since other replicas change requests too: a change that was
    made from it is written only where the version is still the stored one. Of those that ended
    here, the last `limit` are known to have.
    """

    def __init__(self, limit: int, max_bytes: int = RECENT_BYTES) -> None:
        self._limit = limit
        self._max_bytes = max_bytes
        self._states: OrderedDict[RequestId, tuple[Stored, int]] = OrderedDict()
        self._bytes = 0
        self._ended: OrderedDict[RequestId, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    @property
    def size_bytes(self) -> int:
        """About how much memory they take."""
        return self._bytes

    def knows(self, request_id: RequestId) -> bool:
        """Whether there is anything to be tried with."""
        return request_id in self._states

    def keep(self, stored: Stored) -> None:
        """Remember a state that was just committed; one whose request has ended is forgotten."""
        request = stored.state.request
        known = self._states.get(request.request_id)
        if known is not None and known[0].version > stored.version:
            return
        self.forget(request.request_id)
        if request.status is not RequestStatus.OPEN:
            self._note_ended(request.request_id)
            return
        if not self._limit:
            return
        weight = weight_of(stored.state)
        self._states[request.request_id] = (stored, weight)
        self._bytes += weight
        while len(self._states) > self._limit or self._bytes > self._max_bytes:
            self.forget(next(iter(self._states)))

    def has_ended(self, request_id: RequestId) -> bool:
        """Whether the request surely has ended: nothing of it changes any more."""
        return request_id in self._ended

    def _note_ended(self, request_id: RequestId) -> None:
        self._ended[request_id] = None
        if len(self._ended) > self._limit:
            self._ended.popitem(last=False)

    def forget(self, request_id: RequestId) -> None:
        """Drop what is known of a request."""
        _, weight = self._states.pop(request_id, (None, 0))
        self._bytes -= weight

    def clear(self) -> None:
        """Drop everything: what the versions say may have happened twice, and differently."""
        self._states.clear()
        self._bytes = 0
        self._ended.clear()

    def find(self, request_id: RequestId, now_ms: int) -> Stored | None:
        """The last known state, where the version says all about it.

        A claim of the outbox changes an attempt and no version: a state with an attempt that
        anybody may have claimed is not given out.
        """
        stored, _ = self._states.get(request_id, (None, 0))
        return stored if stored is not None and stored.claimed_until_ms > now_ms else None
