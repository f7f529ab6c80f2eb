"""`dispatcher bench roundtrip`: a whole dispatch beside the bare thing it is built on.

With a broker and a database that is a task over aio-pika, and one over Celery where that is
installed; without, a direct HTTP call to the same handler. All have the same payload, and all
processes live through all rounds.
"""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from dispatcher.bench.chain import Chain, Services, running_chain
from dispatcher.bench.child import Child, running
from dispatcher.bench.contest import Contestant, Rules, Series, hold, latency_over, ratios, summary
from dispatcher.bench.counterparts import (
    CELERY,
    DIRECT,
    LOAD,
    RAW,
    celery_is_missing,
    celery_task,
    direct_call,
    raw_task,
)
from dispatcher.bench.process_time import resident_mb
from dispatcher.clock import Clock

FULL = "full"


async def roundtrip(
    rules: Rules, services: Services | None, *, clock: Clock, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run all rounds; the figures as one JSON document."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dispatcher-bench-")))
        missing = None if services is None else celery_is_missing()
        others = await _counterparts(stack, folder, services, with_celery=missing is None)
        say("starting the dispatcher")
        chain = await stack.enter_async_context(running_chain(folder, services, clock))
        load = await stack.enter_async_context(running("load", folder, "-m", LOAD))
        full = _over_http(load, chain)
        series, fsync = await hold((*others, full), rules, say)
        memory = {name: resident_mb(pid) for name, pid in full.processes.items()}
    told = report(series, rules, [one.name for one in others])
    left_out = {CELERY: missing} if missing else {}
    return told | {"left_out": left_out, "resident_mb": memory, "fsync_ms": fsync}


async def _counterparts(
    stack: AsyncExitStack, folder: Path, services: Services | None, *, with_celery: bool
) -> Sequence[Contestant]:
    if services is None:
        return [await stack.enter_async_context(direct_call(folder))]
    found = [await stack.enter_async_context(raw_task(folder, services))]
    if with_celery:
        found.append(await stack.enter_async_context(celery_task(folder, services)))
    return found


def _over_http(load: Child, chain: Chain) -> Contestant:
    processes = {**chain.processes, "load": load.pid}
    return Contestant(name=FULL, driver=load, order={"url": chain.target.url}, processes=processes)


def report(series: Series, rules: Rules, others: Sequence[str]) -> dict[str, Any]:
    """All figures and ratios; the first of the others is the limit."""
    points = {
        str(concurrency): {name: summary(series, name, concurrency) for name in (FULL, *others)}
        for concurrency in rules.concurrency
    }
    limit = others[0]
    return {
        "benchmark": "roundtrip",
        "mode": "rabbitmq+postgresql" if limit == RAW else "embedded",
        "rounds": rules.rounds,
        "seconds": rules.seconds,
        "payload_kb": rules.payload_kb,
        "points": points,
        "ratios": {str(c): _ratios(series, others, c) for c in rules.concurrency},
        f"p50_over_{limit}_ms": latency_over(series, (FULL, limit), min(rules.concurrency)),
    }


def _ratios(series: Series, others: Sequence[str], concurrency: int) -> dict[str, float | None]:
    """To the limit in rate and CPU, to Celery in rate alone: null where it was not measured."""
    found = ratios(series, (FULL, others[0]), concurrency)
    if others[0] == DIRECT:
        return found
    beside = ratios(series, (FULL, CELERY), concurrency) if CELERY in others else {CELERY: None}
    return {**found, CELERY: beside[CELERY]}
