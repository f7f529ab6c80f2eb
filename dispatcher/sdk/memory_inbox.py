"""An inbox in memory: for agents whose every capability is idempotent."""

from collections import OrderedDict
from dataclasses import replace
from typing import Literal

from dispatcher.clock import Clock, SystemClock
from dispatcher.sdk.inbox import Claim, Inbox, Judgement, Record, Verdict, judge

MAX_KEYS = 10_000
MAX_BYTES = 64 * 1024 * 1024


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
        """Judge and, on RUN, remember the claim; atomic, as nothing is awaited in between."""
        now = self._clock.monotonic()
        record = self._running.get(claim.key) or self._finished.get(claim.key)
        judgement = judge(record, claim, now)
        if judgement.verdict is not Verdict.RUN:
            return judgement
        if record is None and not self._has_room():
            return Judgement(verdict=Verdict.FULL)
        self._forget(claim.key)
        self._running[claim.key] = Record(
            owner=claim.owner, attempt=claim.attempt, expires_at=now + claim.hold_s
        )
        return judgement

    async def hold(self, key: str, owner: str, hold_s: float) -> None:
        """Move the end of the claim."""
        record = self._running.get(key)
        if record is not None and record.owner == owner:
            self._running[key] = replace(record, expires_at=self._clock.monotonic() + hold_s)

    async def finish(self, key: str, owner: str, outcome: bytes, *, retryable: bool) -> None:
        """Keep the outcome for as long as the bounds allow."""
        record = self._running.get(key)
        if record is None or record.owner != owner:
            return
        del self._running[key]
        self._finished[key] = replace(record, outcome=outcome, retryable=retryable)
        self._bytes += len(outcome)
        while self._bytes > self._max_bytes and len(self._finished) > 1:
            self._forget(next(iter(self._finished)))

    async def aclose(self) -> None:
        """Forget everything."""
        self._running.clear()
        self._finished.clear()
        self._bytes = 0

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
