"""`dispatcher bench load`: requests at a steady rate, whether or not the dispatcher keeps up."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatcher.bench.chain import Chain, Services, running_chain
from dispatcher.bench.child import running
from dispatcher.bench.disk import fsync_ms
from dispatcher.bench.post import Target
from dispatcher.bench.process_time import cpu_ms, listener, machine_busy_ms, resident_mb
from dispatcher.clock import Clock

SETTLE_S = 60.0
_PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRules:
    """How much. At most `connections` requests are open at once; more wait, and that counts."""

    requests: int
    rate: float
    connections: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What to start when no running gateway is named."""

    services: Services | None


async def load(
    rules: LoadRules, where: Target | Own, *, clock: Clock, say: Callable[[str], None]
) -> dict[str, Any]:
    """Send everything and wait for every answer; the figures as one JSON document."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dispatcher-bench-")))
        say("starting")
        chain = await stack.enter_async_context(_chain(folder, where, clock))
        sender = await stack.enter_async_context(running("load", folder, "-m", "dispatcher.bench.http_load"))
        processes = {**chain.processes, "load": sender.pid}
        fsync = await asyncio.to_thread(fsync_ms)
        busy, before = machine_busy_ms(), {name: cpu_ms(pid) for name, pid in processes.items()}
        say(f"{rules.requests} requests at {rules.rate:g} per second")
        seconds = rules.requests / rules.rate + SETTLE_S + _PATIENCE_S
        figures = await sender.ask(_order(rules, chain.target), seconds)
        used = {name: cpu_ms(pid) - before[name] for name, pid in processes.items()}
        foreign = (machine_busy_ms() - busy - sum(used.values())) / (figures["seconds"] * 1000)
        seen = {
            "foreign_cpus": round(foreign, 2),
            "cpu_ms": _per_request(used, rules.requests),
            "resident_mb": {name: resident_mb(pid) for name, pid in processes.items()},
            "fsync_ms": round(fsync, 3),
        }
    asked = {"benchmark": "load", "requests": rules.requests, "offered_rate": rules.rate}
    return asked | {"mode": _mode(where)} | figures | seen


@asynccontextmanager
async def _chain(folder: Path, where: Target | Own, clock: Clock) -> AsyncIterator[Chain]:
    if isinstance(where, Target):
        pid = listener(where.address[1])
        yield Chain(target=where, processes={} if pid is None else {"gateway": pid})
        return
    async with running_chain(folder, where.services, clock) as chain:
        yield chain


def _order(rules: LoadRules, target: Target) -> dict[str, object]:
    return {
        "do": "open",
        "url": target.url,
        "requests": rules.requests,
        "rate": rules.rate,
        "connections": rules.connections,
        "settle_s": SETTLE_S,
    }


def _mode(where: Target | Own) -> str:
    if isinstance(where, Target):
        return "running gateway"
    return "rabbitmq+postgresql" if where.services else "embedded"


def _per_request(used: Mapping[str, float], requests: int) -> dict[str, float]:
    each = {name: round(ms / requests, 3) for name, ms in used.items()}
    return {**each, "sum": round(sum(each.values()), 3)}
