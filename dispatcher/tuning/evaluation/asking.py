"""Asks a registry what a data set asks: in batches, or one by one against the clock."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial

import numpy as np

from dispatcher.clock import Clock
from dispatcher.identifiers import Capability
from dispatcher.routing.router import Ranking
from dispatcher.tuning.basis.dataset import Dataset
from dispatcher.tuning.basis.metrics import bootstrapped, quantile
from dispatcher.tuning.basis.product import Registry
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.verdict import NO_MESSAGES, NO_REQUESTS, Figures, Verdict, missing

BATCH = 64
"""Texts that are ranked at a time."""
TIMED = 200
"""Decisions of each kind that are timed, at most."""
WARM = 5
"""Decisions before those; the first call of anything is slow."""
NO_UNSEEN = "too few texts that are not registered as examples"

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how many of it are done, of how many."""


async def rank_all(
    registry: Registry, rows: Sequence[RequestRow], tell: Callable[[int], None]
) -> AsyncIterator[tuple[RequestRow, Ranking]]:
    """Each row with its ranking, in order; `tell` hears how many are done."""
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        rankings = await registry.router.rank([row.text for row in batch])
        for pair in zip(batch, rankings, strict=True):
            yield pair
        tell(start + len(batch))


def verdict(registry: Registry, row: RequestRow, ranking: Ranking) -> Verdict:
    """What is kept of a ranking; twins count as what they stand for."""
    winner = ranking.winner
    names = dict.fromkeys(registry.meant(one.capability) for one in ranking.capabilities[:6])
    return Verdict(
        row=row,
        best=tuple(names)[:3],
        similarity=winner.similarity if winner else 0.0,
        scope_score=ranking.scope_score,
        in_scope=ranking.in_scope,
    )


async def found_in(
    registry: Registry, rows: Sequence[RequestRow], tell: Callable[[int], None]
) -> list[frozenset[Capability]]:
    """The capabilities in each message that the product would give to agents, as the data set calls them."""
    found = []
    for number, row in enumerate(rows, start=1):
        intents = (await registry.plan(row.text)).plan.intents
        found.append(frozenset(registry.meant(one.capability) for one in intents if one.capability))
        tell(number)
    return found


async def speed_figures(registry: Registry, dataset: Dataset, clock: Clock, seed: int) -> Figures:
    """Milliseconds of single decisions about texts that nobody encoded before; so it has to come first."""
    chance = random.Random(f"{seed} speed")  # noqa: S311 - draws samples, keeps no secret

    async def one(text: str) -> None:
        registry.decide((await registry.router.rank([text]))[0])

    async def two(text: str) -> None:
        registry.decide_all(await registry.plan(text))

    known = {text for row in dataset.agents.values() for text in (*row.descriptions, *row.examples)}
    pairs = [row for row in dataset.messages if len(row.wanted) == 2]
    singles = await _timed(one, _sample(dataset.requests, known, chance), clock)
    doubles = await _timed(two, _sample(pairs, known, chance), clock)
    spread = np.random.default_rng(seed)
    return _speeds("ms", singles, dataset.requests, spread) | _speeds("ms_two", doubles, pairs, spread)


def _sample(rows: Iterable[RequestRow], known: set[str], chance: random.Random) -> list[str]:
    texts = list(dict.fromkeys(row.text for row in rows if row.text not in known))
    return chance.sample(texts, min(len(texts), TIMED + WARM))


async def _timed(call: Callable[[str], Awaitable[None]], texts: Sequence[str], clock: Clock) -> list[float]:
    taken = []
    for text in texts:
        started = clock.monotonic()
        await call(text)
        taken.append((clock.monotonic() - started) * 1000)
    return taken[WARM:]


def _speeds(
    prefix: str, taken: Sequence[float], rows: Sequence[RequestRow], chance: np.random.Generator
) -> Figures:
    shares = {f"{prefix}_p50": 0.5, f"{prefix}_p95": 0.95}
    if not taken:
        nothing = NO_REQUESTS if prefix == "ms" else NO_MESSAGES
        return missing(shares, NO_UNSEEN if rows else nothing)
    found = {name: bootstrapped(partial(quantile, at=at), chance, taken) for name, at in shares.items()}
    return Figures(found=found)
