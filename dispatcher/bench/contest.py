"""Interleaved rounds: every contestant in every round, and only their ratios within a round count."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dispatcher.bench.child import Child
from dispatcher.bench.disk import fsync_ms
from dispatcher.bench.process_time import cpu_ms, machine_busy_ms
from dispatcher.bench.statistic import SHARES, median_ratio, medians

WARM_UP_S = 0.5
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """Something that is measured: who drives it, with which order, and which processes work for it."""

    name: str
    driver: Child
    order: Mapping[str, object]
    processes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How long and how often; tasks and results are of about `payload_kb`."""

    rounds: int
    seconds: float
    concurrency: tuple[int, ...]
    payload_kb: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One contestant at one concurrency in one round; CPU in ms of each process per request.

    `foreign` is how many processors everything else on the machine kept busy meanwhile.
    """

    figures: Mapping[str, float]
    cpu: Mapping[str, float]
    foreign: float

    @property
    def cpu_sum(self) -> float:
        """CPU ms of all processes for one request."""
        return sum(self.cpu.values())


Series = dict[tuple[str, int], list[Measured]]


async def hold(
    contestants: Sequence[Contestant], rules: Rules, say: Callable[[str], None]
) -> tuple[Series, float]:
    """All rounds, their order turned each time; also the median of fsync over the rounds, in ms."""
    series: Series = {}
    fsyncs = []
    for number in range(rules.rounds):
        say(f"round {number + 1} of {rules.rounds}")
        fsyncs.append(await asyncio.to_thread(fsync_ms))
        for concurrency in rules.concurrency:
            for one in contestants if number % 2 == 0 else reversed(contestants):
                order = {"do": "closed", "concurrency": concurrency, "payload_kb": rules.payload_kb}
                measured = await measure(one, order, rules.seconds)
                series.setdefault((one.name, concurrency), []).append(measured)
    return series, round(median(fsyncs), 3)


async def measure(one: Contestant, closed: Mapping[str, object], seconds: float) -> Measured:
    """One measurement of a closed loop after its warm-up."""
    order = {**one.order, **closed}
    await one.driver.ask({**order, "seconds": min(WARM_UP_S, seconds)}, _PATIENCE_S)
    busy, before = machine_busy_ms(), _cpu(one)
    figures = await one.driver.ask({**order, "seconds": seconds}, seconds + _PATIENCE_S)
    used = {name: ms - before[name] for name, ms in _cpu(one).items()}
    foreign = (machine_busy_ms() - busy - sum(used.values())) / (figures["elapsed_s"] * 1000)
    each = {name: ms / max(figures["completed"], 1) for name, ms in used.items()}
    return Measured(figures=figures, cpu=each, foreign=foreign)


def _cpu(one: Contestant) -> dict[str, float]:
    return {name: cpu_ms(pid) for name, pid in one.processes.items()}


def summary(series: Series, name: str, concurrency: int) -> dict[str, Any]:
    """Medians of one contestant at one concurrency; completed and failed are sums."""
    rounds = series[name, concurrency]
    middle = medians([one.figures for one in rounds])
    cpu = medians([one.cpu for one in rounds])
    return {
        "rate": round(middle["rate"], 1),
        **{share: round(middle[share], 2) for share in SHARES},
        "cpu_ms": {**cpu, "sum": round(median(one.cpu_sum for one in rounds), 3)},
        "foreign_cpus": round(median(one.foreign for one in rounds), 2),
        "completed": sum(int(one.figures["completed"]) for one in rounds),
        "failed": sum(int(one.figures["failed"]) for one in rounds),
    }


def ratios(series: Series, names: tuple[str, str], concurrency: int) -> dict[str, float | None]:
    """The first one's rate and CPU divided by the second's, median over rounds."""
    ours, theirs = (series[name, concurrency] for name in names)
    rates = [[one.figures["rate"] for one in side] for side in (ours, theirs)]
    cpus = [[one.cpu_sum for one in side] for side in (ours, theirs)]
    return {names[1]: median_ratio(*rates), f"{names[1]}_cpu": median_ratio(*cpus)}


def latency_over(series: Series, names: tuple[str, str], concurrency: int) -> float:
    """How many ms the first one's p50 is over the second's, median over rounds."""
    ours, theirs = (series[name, concurrency] for name in names)
    over = [a.figures["p50_ms"] - b.figures["p50_ms"] for a, b in zip(ours, theirs, strict=True)]
    return round(median(over), 2)
