"""`dispatcher bench load`: requests at a steady rate, whether or not the dispatcher keeps up.

Asked to, it first finds the highest rate that is kept up with, holds it, and puts it beside what
aio-pika alone does in a closed loop.
"""

import resource
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dispatcher.bench.chain import Chain, Services, running_chain
from dispatcher.bench.child import running
from dispatcher.bench.contest import Contestant, measure
from dispatcher.bench.counterparts import LOAD, RAW, raw_task
from dispatcher.bench.offer import Generator
from dispatcher.bench.open_loop import COMPLETED
from dispatcher.bench.post import Target
from dispatcher.bench.process_time import listener
from dispatcher.bench.rate_search import Try, highest_kept, next_rate
from dispatcher.clock import Clock

RATE = 500.0
"""Requests per second of the published load (E7)."""
P99_MS = 250.0
MARK = 0.5
CALLERS = 128
"""Of the bare task."""
_FIRST_SHARE = 0.4
_FIRST_RATE = 100.0
_HOLD_S = 60.0
_HOLDS = 4
_BACK = 0.87
_FILES, _OTHER_FILES = 5_200, 200
_LEFT_OUT = {RAW: "nothing bare to compare with without --broker and --store"}
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRules:
    """How much; with `find`, first the highest rate, in steps of `step_s`."""

    requests: int
    rate: float = RATE
    payload_kb: int = 1
    find: bool = False
    step_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What to start when no running gateway is named."""

    services: Services | None


async def load(rules: LoadRules, where: Target | Own, *, clock: Clock, say: Say) -> dict[str, Any]:
    """Send everything and wait for every answer; the figures as one JSON document."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dispatcher-bench-")))
        say("starting")
        connections = _allow_connections()
        raw = await stack.enter_async_context(_raw(folder, rules, where))
        chain = await stack.enter_async_context(_chain(folder, where, clock))
        sender = await stack.enter_async_context(running("load", folder, "-m", LOAD))
        generator = Generator(
            sender=sender,
            target=chain.target,
            processes={**chain.processes, "load": sender.pid},
            connections=connections,
            payload_kb=rules.payload_kb,
        )
        found = await _Ceiling(generator, raw, rules, say).find() if rules.find else {}
        say(f"{rules.requests} requests at {rules.rate:g} per second")
        figures = await generator.offer(rules.requests, rules.rate)
    return {"benchmark": "load", "mode": _mode(where), "payload_kb": rules.payload_kb} | found | figures


class _Ceiling:
    """The highest rate whose 99th percentile stays below P99_MS, beside the bare task's rate."""

    def __init__(self, generator: Generator, raw: Contestant | None, rules: LoadRules, say: Say) -> None:
        self._generator = generator
        self._raw = raw
        self._rules = rules
        self._say = say

    async def find(self) -> dict[str, Any]:
        """Short steps to find it, then a long one to hold it; the bare task before and after."""
        raw = [await self._raw_rate()]
        tries = await self._steps(_FIRST_SHARE * raw[0] if raw[0] else _FIRST_RATE)
        holds, held = await self._hold(highest_kept(tries))
        raw.append(await self._raw_rate())
        bare = median(raw)
        told = {"steps": [asdict(one) for one in tries], "holds": [asdict(one) for one in holds]}
        return {
            "highest": {"held": held, "p99_limit_ms": P99_MS, **told},
            "raw": {"rate": round(bare, 1), "callers": CALLERS} if bare else None,
            "ratio": round(held["offered_rate"] / bare, 3) if held and bare else None,
            "mark": MARK,
            "left_out": {} if bare else _LEFT_OUT,
        }

    async def _steps(self, first: float) -> list[Try]:
        tries: list[Try] = []
        while (rate := next_rate(tries, first)) is not None:
            self._say(f"trying {rate:.0f} per second")
            figures = await self._generator.offer(max(1, round(rate * self._rules.step_s)), rate)
            tries.append(_tried(figures))
        return tries

    async def _hold(self, rate: float | None) -> tuple[list[Try], dict[str, Any] | None]:
        """Longer tries, each at a lower rate, and all about the first one that was kept up with."""
        tries: list[Try] = []
        while rate is not None and len(tries) < _HOLDS:
            self._say(f"holding {rate:.0f} per second")
            figures = await self._generator.offer(min(self._rules.requests, round(rate * _HOLD_S)), rate)
            tries.append(_tried(figures))
            if tries[-1].kept:
                return tries, figures
            rate *= _BACK
        return tries, None

    async def _raw_rate(self) -> float:
        """Tasks per second; 0 where there is no broker."""
        if self._raw is None:
            return 0.0
        self._say("the bare task")
        order = {"do": "closed", "concurrency": CALLERS, "payload_kb": self._rules.payload_kb}
        return (await measure(self._raw, order, self._rules.step_s)).figures["rate"]


def _tried(figures: Mapping[str, Any]) -> Try:
    """Kept up with: every request was answered with success, and nearly all of them in time."""
    all_completed = figures["outcomes"] == {COMPLETED: figures["requests"]}
    p99_ms = figures["p99_ms"]
    return Try(rate=figures["offered_rate"], p99_ms=p99_ms, kept=all_completed and p99_ms < P99_MS)


@asynccontextmanager
async def _chain(folder: Path, where: Target | Own, clock: Clock) -> AsyncIterator[Chain]:
    if isinstance(where, Target):
        pid = listener(where.address[1])
        yield Chain(target=where, processes={} if pid is None else {"gateway": pid})
        return
    async with running_chain(folder, where.services, clock) as chain:
        yield chain


@asynccontextmanager
async def _raw(folder: Path, rules: LoadRules, where: Target | Own) -> AsyncIterator[Contestant | None]:
    if not rules.find or isinstance(where, Target) or where.services is None:
        yield None
        return
    async with raw_task(folder, where.services) as contestant:
        yield contestant


def _allow_connections() -> int:
    """Lift our limit of open files, and our children's, as far as we may; the connections it allows."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _FILES if most == resource.RLIM_INFINITY else min(most, _FILES)
    if 0 <= now < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return files - _OTHER_FILES


def _mode(where: Target | Own) -> str:
    if isinstance(where, Target):
        return "running gateway"
    return "rabbitmq+postgresql" if where.services else "embedded"
