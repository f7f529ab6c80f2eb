"""Asks a registry what a data set asks: in batches, or one by one against the clock."""

import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import numpy as np

from dispatcher.clock import Clock
from dispatcher.identifiers import Capability
from dispatcher.routing.router import Ranking
from dispatcher.tuning.basis.dataset import Dataset
from dispatcher.tuning.basis.metrics import bootstrapped, quantile
from dispatcher.tuning.basis.product import FreshRegistry
from dispatcher.tuning.basis.ranked import rank_all, silent
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.routed import NO_MESSAGES, NO_REQUESTS, Bare, Figures, RoutedRow, missing

TIMED = 200
"""Decisions of each kind that are timed, at most."""
WARM = 5
"""Decisions before those; the first call of anything is slow."""
NO_UNSEEN = "too few texts that are not registered as examples"
NO_SPREAD = "no interval: all times that were taken are the same"

Tell = Callable[[str, int, int], None]
"""Progress: what is being done, how many of it are done, of how many."""


async def route_all(
    registry: FreshRegistry, rows: Sequence[RequestRow], tell: Callable[[int], None] = silent
) -> list[RoutedRow]:
    """What routing makes of each row, in order; `tell` hears how many are done."""
    return [routed_row(registry, row, found) async for row, found in rank_all(registry.router, rows, tell)]


def routed_row(registry: FreshRegistry, row: RequestRow, ranking: Ranking) -> RoutedRow:
    """What is kept of a ranking; a second name of a capability is what it stands for."""
    winner, calibration = ranking.winner, registry.router.calibration
    names = dict.fromkeys(registry.meant(one.capability) for one in ranking.capabilities[:6])
    twins = (pair for pair in calibration.twins if winner) if calibration else ()
    return RoutedRow(
        row=row,
        best=tuple(names)[:3],
        similarity=winner.similarity if winner else 0.0,
        scope_score=ranking.scope_score,
        in_scope=ranking.in_scope,
        twins=frozenset(
            registry.meant(one) for pair in twins if winner and winner.capability in pair for one in pair
        ),
    )


async def intents_of(
    registry: FreshRegistry, rows: Sequence[RequestRow], tell: Callable[[int], None] = silent
) -> list[tuple[Capability | None, ...]]:
    """What each intent of each message would be given to, as the data set calls it; None is nobody."""
    found = []
    for number, row in enumerate(rows, start=1):
        intents = (await registry.plan(row.text)).plan.intents
        given = (one.capability for one in intents)
        found.append(tuple(None if one is None else registry.meant(one) for one in given))
        tell(number)
    return found


async def speed_figures(registry: FreshRegistry, unseen: Dataset, clock: Clock, seed: int) -> Figures:
    """Milliseconds of single decisions about texts that nobody encoded before; so it has to come first."""
    chance = random.Random(f"{seed} speed")  # noqa: S311 - draws samples, keeps no secret

    async def one(text: str) -> None:
        registry.decide((await registry.router.rank([text]))[0])

    async def two(text: str) -> None:
        registry.decide_all(await registry.plan(text))

    pairs = [row for row in unseen.messages if len(row.wanted) == 2]
    singles = await _timed(one, _drawn(unseen.requests, chance), clock)
    doubles = await _timed(two, _drawn(pairs, chance), clock)
    spread = np.random.default_rng(seed)
    return _speeds("ms", singles, unseen.requests, spread) | _speeds("ms_two", doubles, pairs, spread)


def _drawn(rows: Iterable[RequestRow], chance: random.Random) -> list[str]:
    texts = list(dict.fromkeys(row.text for row in rows))
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
    quantiles = {name: partial(quantile, at=at) for name, at in shares.items()}
    if len(set(taken)) < 2:
        bare = {name: Bare(statistic(taken), len(taken)) for name, statistic in quantiles.items()}
        return missing(shares, NO_SPREAD) | Figures(bare=bare)
    within = (min(taken), max(taken))
    return Figures(
        found={name: bootstrapped(one, chance, taken, within=within) for name, one in quantiles.items()}
    )
