"""An inbox in memory: for agents whose every capability is idempotent."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

from dispatcher.clock import Clock, SystemClock
from dispatcher.records import replace
from dispatcher.sdk.inbox import Claim, Inbox, Judgement, Record, Untold, Verdict, judge

MAX_KEYS = 10_000
MAX_BYTES = 4 * 1024 * 1024
"""With as much again for keys and records an agent's process stays under 60 MB."""


class MemoryInbox(Inbox):
    """Forgets everything with its process; the dispatcher refuses it for other capabilities.

    Holds at most `max_keys` keys and `max_bytes` of outcomes. At a bound the longest finished
    ones are forgotten; running ones never: when all are running, a new claim is FULL.
    """

    def __init__(
        self, *, max_keys: int = MAX_KEYS, max_bytes: int = MAX_BYTES, clock: Clock | None = None
    ) -> None:
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._running: dict[str, Record] = {}
        self._finished: OrderedDict[str, Record] = OrderedDict()
        self._bytes = 0

    @property
    def kind(self) -> Literal["memory"]:
        """Private to its process."""
        return "memory"

    @property
    def inbox_id(self) -> None:
        """None: no later process has this memory."""
        return None

    async def claim(self, claim: Claim) -> Judgement:
        """Judge and remember; atomic, as nothing is awaited in between."""
        record = self._running.get(claim.key) or self._finished.get(claim.key)
        judgement = judge(record, claim, self._clock.monotonic())
        if judgement.record is None:
            return judgement
        if record is None and not self._has_room():
            return Judgement(verdict=Verdict.FULL)
        self._forget(claim.key)
        self._running.pop(claim.key, None)
        self._keep(claim.key, judgement.record)
        return judgement

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Move the end of the claim."""
        record = self._running.get(key)
        if record is not None and record.owner == owner:
            self._running[key] = replace(record, expires_at=self._clock.monotonic() + hold_s)

    async def finish(
        self, key: str, owner: str, outcome: bytes, *, retryable: bool, failed: bool = False
    ) -> None:
        """Keep the outcome for as long as the bounds allow."""
        record = self._running.get(key)
        if record is None or record.owner != owner:
            return
        del self._running[key]
        ended = Record(
            owner=owner,
            attempt=record.attempt,
            expires_at=record.expires_at,
            outcome=outcome,
            retryable=retryable,
            failed=failed,
        )
        self._keep(key, ended)

    async def told(self, key: str, owner: str) -> None:
        """Nothing to forget: envelopes are of use to a later process only."""

    async def untold(self, owner: str) -> Sequence[Untold]:
        """None: no earlier process has left anything here."""
        return ()

    async def aclose(self) -> None:
        """Forget everything."""
        self._running.clear()
        self._finished.clear()
        self._bytes = 0

    def _keep(self, key: str, record: Record) -> None:
        if record.outcome is None:
            self._running[key] = record
            return
        self._finished[key] = record
        self._bytes += len(record.outcome)
        while self._bytes > self._max_bytes and len(self._finished) > 1:
            self._forget(next(iter(self._finished)))

    def _has_room(self) -> bool:
        if len(self._running) + len(self._finished) < self._max_keys:
            return True
        if self._finished:
            self._forget(next(iter(self._finished)))
        return len(self._running) < self._max_keys

    def _forget(self, key: str) -> None:
        record = self._finished.pop(key, None)
        if record is not None and record.outcome is not None:
            self._bytes -= len(record.outcome)
