"""Open loop: requests come when they come, whether or not the ones before are answered."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dispatcher.bench.statistic import spread
from dispatcher.clock import Clock

Send = Callable[[], Awaitable[str]]
"""Sends one request; returns what became of it in one word."""


@dataclass(slots=True)
class _Seen:
    taken: dict[str, list[float]] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    behind_ms: float = 0.0


async def open_loop(send: Send, *, requests: int, rate: float, clock: Clock) -> dict[str, Any]:
    """Begin `requests` calls, the nth `n / rate` seconds after the start, and wait for all.

    A latency counts from when its request was due, not from when it could be sent: what had to
    wait did wait. `generator_behind_ms` is how late we were ourselves at worst.
    """
    seen = _Seen()
    started = time.perf_counter()

    async def one(due: float) -> None:
        outcome = await send()
        now = time.perf_counter()
        seen.counts[outcome] += 1
        seen.taken.setdefault(outcome, []).append((now - due) * 1000)
        seen.ended.append(now)

    async with asyncio.TaskGroup() as group:
        for number in range(requests):
            due = started + number / rate
            early = due - time.perf_counter()
            if early > 0:
                await clock.sleep(early)
            else:
                seen.behind_ms = max(seen.behind_ms, -early * 1000)
            group.create_task(one(due))
    return _report(seen, time.perf_counter() - started)


def _report(seen: _Seen, elapsed: float) -> dict[str, Any]:
    completed = seen.taken.get("completed", [])
    gaps = [later - earlier for earlier, later in pairwise(seen.ended)]
    return {
        "seconds": round(elapsed, 3),
        "rate": round(len(completed) / elapsed, 1),
        "outcomes": dict(seen.counts),
        **spread(completed),
        "by_outcome": {name: spread(taken) for name, taken in seen.taken.items()},
        "longest_stall_ms": round(max(gaps, default=0.0) * 1000, 1),
        "generator_behind_ms": round(seen.behind_ms, 1),
    }
