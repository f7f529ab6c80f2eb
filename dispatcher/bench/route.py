"""`dispatcher bench route`: what a routing decision costs, beside one vector search and one encoder call."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from dispatcher.bench.bare_search import BareSearch
from dispatcher.bench.fleet import AllIdle, fleet, question
from dispatcher.bench.statistic import median_ratio, spread
from dispatcher.clock import SystemClock
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.embedder import Embedder
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.router import Query, Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.use_encoder import UseEncoder

RUNS = 30
"""Of each step in each round."""

TEXTS = 16
"""Known texts, asked in turn."""

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
Step = Callable[[], Awaitable[object]]
Say = Callable[[str], None]


async def route(sizes: tuple[int, ...], rounds: int, encoder: str, say: Say) -> dict[str, Any]:
    """Measure among so many agents, one size after the other; the figures as one JSON document."""
    points = {}
    with threadpool_limits(limits=1):
        embedder: Embedder = UseEncoder() if encoder == "use" else HashingEncoder()
        for size in sizes:
            say(f"registering {size} agents")
            with _encoding(embedder) as batching:
                steps, sync_s = await _steps(size, embedder, batching)
                say(f"deciding among {size} agents")
                points[str(size)] = _point(await _measure(steps, rounds)) | {"sync_s": round(sync_s, 2)}
    return {"benchmark": "route", "encoder": encoder, "rounds": rounds, "runs": RUNS, "agents": points}


@contextmanager
def _encoding(embedder: Embedder) -> Iterator[BatchingEncoder]:
    batching = BatchingEncoder(embedder)
    try:
        yield batching
    finally:
        batching.close()


async def _steps(
    size: int, embedder: Embedder, batching: BatchingEncoder
) -> tuple[Mapping[str, Step], float]:
    """What is measured, by name, and how many seconds the registration of all agents took."""
    agents, clock = fleet(size), SystemClock()
    router = Router(
        encoder=batching,
        directory=AllIdle(agents),
        make_index=FaissIndex,
        rules=RoutingRules(),
        clock=clock,
    )
    started = clock.monotonic()
    await router.sync(agents, 1)
    synced = clock.monotonic() - started
    asked = [question(agent) for agent in agents[:: max(1, size // TEXTS)]][:TEXTS]
    ranked = dict(zip(asked, await router.rank(asked), strict=True))
    known, new, search = cycle(asked), count(), BareSearch(size, embedder.dimensions)

    async def scan() -> None:
        search.search()

    async def encode() -> None:
        embedder.encode([f"{next(known)} please {next(new)}"])

    async def decide() -> None:
        text = next(known)
        router.decide(_query(text), ranked[text])

    async def choose(text: str) -> None:
        router.decide(_query(text), (await router.rank([text]))[0])

    steps: dict[str, Step] = {
        "flat_scan": scan,
        "encoder_call": encode,
        "decide": decide,
        "text_known": lambda: choose(next(known)),
        "text_new": lambda: choose(f"{next(known)} please {next(new)}"),
    }
    return steps, synced


async def _measure(steps: Mapping[str, Step], rounds: int) -> Mapping[str, list[list[float]]]:
    """Milliseconds of every run of every step, by round; the first round warms up."""
    taken: dict[str, list[list[float]]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            block = []
            for _ in range(RUNS):
                started = time.perf_counter()
                await step()
                block.append((time.perf_counter() - started) * 1000)
            if number:
                taken[name].append(block)
    return taken


def _point(taken: Mapping[str, list[list[float]]]) -> dict[str, Any]:
    figures = {name: spread([ms for block in blocks for ms in block]) for name, blocks in taken.items()}
    middle = {name: [median(block) for block in blocks] for name, blocks in taken.items()}
    bare = [scan + call for scan, call in zip(middle["flat_scan"], middle["encoder_call"], strict=True)]
    ratios = {
        "text_known_to_flat_scan": median_ratio(middle["text_known"], middle["flat_scan"]),
        "text_new_to_encoder_call": median_ratio(middle["text_new"], middle["encoder_call"]),
        "text_new_to_both": median_ratio(middle["text_new"], bare),
    }
    return {"steps": figures, "ratios": ratios}


def _query(text: str) -> Query:
    return Query(
        text=text,
        capability=None,
        similarity=1.0,
        allows=lambda _capability: True,
        environment="production",
        payload_bytes=512,
        tried=frozenset(),
        now=NOON,
    )
