"""Closed loop: so many callers, each of which asks again as soon as it was answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dispatcher.bench.statistic import spread

Call = Callable[[], Awaitable[bool]]


class Outcomes:
    """What became of the calls since it was made; threads may note at the same time."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._taken: list[float] = []
        self._failed: list[float] = []

    def note(self, asked: float, *, worked: bool) -> None:
        """A call that began at `asked` (`time.perf_counter`) has just ended."""
        taken = (time.perf_counter() - asked) * 1000
        (self._taken if worked else self._failed).append(taken)

    def report(self) -> dict[str, Any]:
        """The figures up to now; the rate counts what worked, over the whole time."""
        elapsed = time.perf_counter() - self._started
        counts = {"completed": len(self._taken), "failed": len(self._failed), "elapsed_s": elapsed}
        return {**counts, "rate": len(self._taken) / elapsed, **spread(self._taken)}


async def closed_loop(callers: Sequence[Call], seconds: float) -> dict[str, Any]:
    """Let every caller go on for `seconds` and wait for its last answer; a call says if it worked."""
    seen = Outcomes()
    until = time.perf_counter() + seconds

    async def go_on(call: Call) -> None:
        while (asked := time.perf_counter()) < until:
            seen.note(asked, worked=await call())

    async with asyncio.TaskGroup() as group:
        for call in callers:
            group.create_task(go_on(call))
    return seen.report()
