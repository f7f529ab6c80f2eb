"""Closed loop: so many callers, each of which asks again as soon as it was answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dispatcher.bench.statistic import spread

Call = Callable[[], Awaitable[bool]]


async def closed_loop(callers: Sequence[Call], seconds: float) -> dict[str, Any]:
    """Let every caller go on for `seconds` and wait for its last answer; a call says if it worked.

    The rate counts what worked, over the whole time.
    """
    taken: list[float] = []
    failed = 0
    started = time.perf_counter()

    async def go_on(call: Call) -> None:
        nonlocal failed
        while (asked := time.perf_counter()) - started < seconds:
            if await call():
                taken.append((time.perf_counter() - asked) * 1000)
            else:
                failed += 1

    async with asyncio.TaskGroup() as group:
        for call in callers:
            group.create_task(go_on(call))
    elapsed = time.perf_counter() - started
    counts = {"completed": len(taken), "failed": failed, "elapsed_s": elapsed}
    return {**counts, "rate": len(taken) / elapsed, **spread(taken)}
