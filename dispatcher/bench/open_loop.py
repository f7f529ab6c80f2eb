"""Open loop: requests come when they come, whether or not the ones before are answered."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

from dispatcher.bench.statistic import spread
from dispatcher.clock import Clock

COMPLETED = "completed"
Send = Callable[[], Awaitable[str]]
"""Sends one request; returns what became of it in one word."""


class Fates:
    """What became of every request of one run."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}
        self._later: Counter[str] = Counter()
        self._completions: list[float] = []
        self._started = self._ended = time.perf_counter()
        self.behind_ms = 0.0

    def note(self, outcome: str, due: float) -> None:
        """The one that was due at `due` (`time.perf_counter`) was answered just now."""
        self._ended = time.perf_counter()
        self._taken.setdefault(outcome, []).append((self._ended - due) * 1000)
        if outcome == COMPLETED:
            self._completions.append(self._ended)

    def note_later(self, outcome: str) -> None:
        """One that was only accepted at first is seen to have ended."""
        self._later[outcome] += 1
        if outcome == COMPLETED:
            self._completions.append(time.perf_counter())

    def report(self) -> dict[str, Any]:
        """The figures. Times and rate are of what was answered at once; stalls lie between completions."""
        elapsed = self._ended - self._started
        completed = self._taken.get(COMPLETED, [])
        gaps = [later - earlier for earlier, later in pairwise(self._completions)]
        return {
            "seconds": round(elapsed, 3),
            "rate": round(len(completed) / elapsed, 1) if elapsed else 0.0,
            "outcomes": {name: len(taken) for name, taken in self._taken.items()},
            "accepted_became": dict(self._later),
            **spread(completed),
            "by_outcome": {name: spread(taken) for name, taken in self._taken.items()},
            "longest_stall_ms": round(max(gaps, default=0.0) * 1000, 1),
            "generator_behind_ms": round(self.behind_ms, 1),
        }


async def open_loop(send: Send, *, requests: int, rate: float, clock: Clock) -> Fates:
    """Begin `requests` calls, the nth `n / rate` seconds after the start, and wait for all.

    A latency counts from when its request was due, not from when it could be sent: what had to
    wait did wait. `generator_behind_ms` is how late we were ourselves at worst.
    """
    fates = Fates()
    started = time.perf_counter()

    async def one(due: float) -> None:
        fates.note(await send(), due)

    async with asyncio.TaskGroup() as group:
        for number in range(requests):
            due = started + number / rate
            early = due - time.perf_counter()
            if early > 0:
                await clock.sleep(early)
            else:
                fates.behind_ms = max(fates.behind_ms, -early * 1000)
            group.create_task(one(due))
    return fates
