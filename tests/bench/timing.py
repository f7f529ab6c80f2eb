"""Times a step many times and prints it beside the bare thing it is built on."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

WARM_UP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Milliseconds of every run of one step."""

    name: str
    runs: Sequence[float]


async def measure(name: str, step: Callable[[], Awaitable[object]], *, runs: int) -> Timing:
    """Run the step `runs` times after a warm-up, one after another."""
    taken = []
    for _ in range(WARM_UP + runs):
        started = time.perf_counter()
        await step()
        taken.append((time.perf_counter() - started) * 1000)
    return Timing(name=name, runs=taken[WARM_UP:])


def print_table(title: str, timings: Sequence[Timing]) -> None:
    """One line for each timing; the first is the bare one that the others are compared with."""
    bare = median(timings[0].runs)
    print(f"\n{title}\n{'':48}{'median ms':>12}{'p95 ms':>12}{'ratio':>10}")
    for timing in timings:
        middle, high = median(timing.runs), quantiles(timing.runs, n=20)[-1]
        print(f"{timing.name:48}{middle:12.3f}{high:12.3f}{middle / bare:10.1f}")
