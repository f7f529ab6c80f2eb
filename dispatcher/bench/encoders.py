"""`dispatcher encoders bench`: what encoding costs, each encoder in turn so that all see the same machine."""

import time
from collections.abc import Callable, Mapping
from itertools import count
from statistics import median
from typing import Any

from dispatcher.bench.statistic import median_ratio
from dispatcher.routing.embedder import Embedder

SIZES = (1, 8, 32)
"""Texts in one call."""
SAYINGS = (
    "我上周买的手机怎么还没发货",
    "where is my parcel, it should have been here by Monday",
    "现在有没有优惠，能不能和会员价一起用",
    "please refund the order I made twice by mistake",
)
Say = Callable[[str], None]
Taken = dict[str, dict[int, list[float]]]


def measure(embedders: Mapping[str, Embedder], rounds: int, say: Say) -> dict[str, Any]:
    """Time calls of 1, 8 and 32 new texts; the first encoder is what the others are compared with.

    Every round asks each encoder once per size; the first round warms up and does not count.
    """
    taken: Taken = {name: {size: [] for size in SIZES} for name in embedders}
    number = count()
    for turn in range(rounds + 1):
        say(f"round {turn} of {rounds}")
        for name, embedder in embedders.items():
            for size in SIZES:
                # New texts each time: some encoders remember.
                texts = [f"{SAYINGS[next(number) % len(SAYINGS)]} {next(number)}" for _ in range(size)]
                started = time.perf_counter()
                embedder.encode(texts)
                elapsed_ms = (time.perf_counter() - started) * 1000
                if turn:
                    taken[name][size].append(elapsed_ms)
    return {name: _figures(taken, name, embedder) for name, embedder in embedders.items()}


def _figures(taken: Taken, name: str, embedder: Embedder) -> dict[str, Any]:
    first = next(iter(taken))
    return {
        "encoder_id": embedder.encoder_id,
        "dimensions": embedder.dimensions,
        "median_ms": {str(size): round(median(taken[name][size]), 3) for size in SIZES},
        f"ratio_to_{first}": {
            str(size): median_ratio(taken[name][size], taken[first][size]) for size in SIZES
        },
    }
