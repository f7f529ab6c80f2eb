"""`dispatcher bench roundtrip`: a whole dispatch beside the bare thing it is built on.

With a broker and a database that is a task over aio-pika; without, a direct HTTP call to the same
handler. Both have the same payload, and all processes live through all rounds.
"""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from dispatcher.bench.chain import BARE, DELETE_S, Chain, Services, running_chain
from dispatcher.bench.child import Child, running
from dispatcher.bench.contest import Contestant, Rules, Series, hold, latency_over, ratios, summary
from dispatcher.bench.process_time import resident_mb
from dispatcher.clock import Clock

FULL = "full"
LEFT_OUT = {"celery": "not measured yet: the bare Celery task is left out of this version"}
_LOAD = "dispatcher.bench.http_load"


async def roundtrip(
    rules: Rules, services: Services | None, *, clock: Clock, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run all rounds; the figures as one JSON document."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dispatcher-bench-")))
        bare = await stack.enter_async_context(_bare(folder, services))
        say("starting the dispatcher")
        chain = await stack.enter_async_context(running_chain(folder, services, clock))
        load = await stack.enter_async_context(running("load", folder, "-m", _LOAD))
        full = _over_http(FULL, load, chain)
        series, fsync = await hold((bare, full), rules, say)
        memory = {name: resident_mb(pid) for name, pid in full.processes.items()}
        seen = {"resident_mb": memory, "fsync_ms": fsync}
    return _report(series, rules, bare.name) | seen


def _over_http(name: str, load: Child, chain: Chain) -> Contestant:
    processes = {**chain.processes, "load": load.pid}
    return Contestant(name=name, driver=load, order={"url": chain.target.url}, processes=processes)


@asynccontextmanager
async def _bare(folder: Path, services: Services | None) -> AsyncIterator[Contestant]:
    chosen = _direct(folder) if services is None else _raw(folder, services)
    async with chosen as contestant:
        yield contestant


@asynccontextmanager
async def _direct(folder: Path) -> AsyncIterator[Contestant]:
    async with (
        running("server", folder, "-m", "dispatcher.bench.direct") as server,
        running("direct load", folder, "-m", _LOAD) as load,
    ):
        url = (await server.wait_for(r'"url":"([^"]+)"'))[1]
        processes = {"server": server.pid, "load": load.pid}
        yield Contestant(name="direct", driver=load, order={"url": url}, processes=processes)


@asynccontextmanager
async def _raw(folder: Path, services: Services) -> AsyncIterator[Contestant]:
    reach = (services.broker, f"{services.prefix}-bare")
    async with (
        running("worker", folder, "-m", BARE, "worker", *reach) as worker,
        running("caller", folder, "-m", BARE, "caller", *reach) as caller,
    ):
        for child in (worker, caller):
            await child.wait_for("ready")
        broker = {name: pid for name, pid in services.processes().items() if name == "broker"}
        processes = {"caller": caller.pid, "worker": worker.pid, **broker}
        try:
            yield Contestant(name="raw", driver=caller, order={}, processes=processes)
        finally:
            await caller.ask({"do": "delete", "queues": [], "exchanges": []}, DELETE_S)


def _report(series: Series, rules: Rules, bare: str) -> dict[str, Any]:
    names = (FULL, bare)
    points = {
        str(concurrency): {name: summary(series, name, concurrency) for name in names}
        for concurrency in rules.concurrency
    }
    broker = bare == "raw"
    nothing = {"celery": None} if broker else {}
    return {
        "benchmark": "roundtrip",
        "mode": "rabbitmq+postgresql" if broker else "embedded",
        "rounds": rules.rounds,
        "seconds": rules.seconds,
        "points": points,
        "ratios": {str(c): ratios(series, names, c) | nothing for c in rules.concurrency},
        f"p50_over_{bare}_ms": latency_over(series, names, min(rules.concurrency)),
        "left_out": LEFT_OUT if broker else {},
    }
