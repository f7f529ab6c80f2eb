"""`dispatcher eval --registry-size N`: how drawn registries tell their own requests from others."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.tuning.basis.dataset import Dataset, unregistered
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.metrics import bootstrapped, mean
from dispatcher.tuning.basis.product import Product, encoding, register
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.asking import Tell, route_all
from dispatcher.tuning.evaluation.document import described, provenance, rounded
from dispatcher.tuning.evaluation.routed import (
    NO_OUTSIDE,
    Bare,
    Figures,
    RoutedRow,
    lost_share,
    missing,
    right_share,
)

DRAWS = 30
LEAST = 10
"""Different registries, from which there is an interval: of fewer, it says nothing."""
MOST_NEAR = 500
"""Requests for capabilities that are not registered, for each draw; more are sampled."""
WORST: Mapping[str, Callable[[Sequence[float]], float]] = {"lost": max, "far": max, "near": max, "top1": min}
"""The figures of a draw, and which of many draws is the worst."""
OUTSIDE = {"far": NO_OUTSIDE, "near": "every capability is registered"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRules:
    """`size` capabilities in each registry, `replicas` agents of each, `twins` of them under two names."""

    size: int
    replicas: int = 1
    twins: int = 0
    draws: int = DRAWS
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRegistry:
    """One drawn registry's capabilities, and the requests that it is asked."""

    capabilities: tuple[Capability, ...]
    inside: tuple[RequestRow, ...]
    far: tuple[RequestRow, ...]
    near: tuple[RequestRow, ...]

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        """All of them, one kind after the other."""
        return self.inside + self.far + self.near


Shares = Mapping[str, float]
"""Of one draw: `lost` and `top1` of requests inside, `far` and `near` accepted; not what it can't tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What was drawn from a data set by which rules; `unseen` is the set without registered texts."""

    dataset: Dataset
    unseen: Dataset
    rules: DrawRules
    samples: Sequence[DrawnRegistry]

    @property
    def different(self) -> int:
        """How many different registries are among those drawn."""
        twins = self.rules.twins
        drawn = [one.capabilities for one in self.samples]
        return len({(frozenset(names), frozenset(names[:twins])) for names in drawn})


async def measure(drawing: Drawing, product: Product, tell: Tell) -> dict[str, Any]:
    """Figures over all draws as one JSON document; see docs/tuning.md for what each means.

    With replicas or twins the same draws are measured without them too, for the differences.
    """
    rules, dataset, samples = drawing.rules, drawing.dataset, drawing.samples
    texts = sum(len(sample.rows) for sample in samples) + 8 * len(dataset.agents)
    with encoding(product, texts) as encoder:
        measured = _Measured(dataset=dataset, product=product, encoder=encoder)
        plain, changed = [], []
        for number, sample in enumerate(samples, start=1):
            plain.append(await measured.shares(sample, DrawRules(size=rules.size)))
            if rules.replicas > 1 or rules.twins:
                changed.append(await measured.shares(sample, rules))
            tell("drawing registries", number, len(samples))
    return {
        "report": "registries",
        "dataset": dataset.name,
        "registry_size": rules.size,
        "replicas": rules.replicas,
        "twins": rules.twins,
        "different_draws": drawing.different,
        **summary(changed or plain, plain, drawing.different, rules.seed),
        "draws": [dict(one) for one in changed or plain],
        **provenance(dataset, drawing.unseen, product, rules.seed),
    }


def draw(dataset: Dataset, rules: DrawRules) -> Drawing:
    """The registries of all draws, each with at least one request inside; registered texts are not asked.

    Raises RequestError where the data set has fewer capabilities, or nothing to ask for one.
    """
    if not 1 <= rules.size <= len(dataset.agents):
        sentence = f"the data set has {len(dataset.agents)} capabilities, not {rules.size}"
        raise RequestError(sentence, code="invalid_dataset")
    unseen = unregistered(dataset)
    asked = sorted({one for row in unseen.requests if len(row.wanted) == 1 for one in row.wanted})
    if not asked:
        raise RequestError("the data set has no requests for one capability", code="invalid_dataset")
    chance = random.Random(f"{rules.seed} draws")  # noqa: S311 - draws samples, keeps no secret
    samples = [_sample(unseen, asked, rules.size, chance) for _ in range(rules.draws)]
    return Drawing(dataset=dataset, unseen=unseen, rules=rules, samples=samples)


def summary(shares: Sequence[Shares], plain: Sequence[Shares], different: int, seed: int) -> dict[str, Any]:
    """Mean over the draws with its interval, the worst draw, and what replicas and twins changed.

    Of fewer than LEAST different registries there is no interval.
    """
    chance = np.random.default_rng(seed)
    figures, worst, changed = Figures(), {}, {}
    for name, pick in WORST.items():
        pairs = [(one[name], other[name]) for one, other in zip(shares, plain, strict=True) if name in one]
        if not pairs:
            figures |= missing((name,), OUTSIDE[name])
            continue
        values = [one for one, _ in pairs]
        figures |= _of_draws(name, values, different, chance)
        worst[name] = rounded(pick(values))
        changed[name] = rounded(mean([one - other for one, other in pairs]))
    return {**described(figures, WORST), "worst": worst, "changed": changed}


def _of_draws(name: str, values: Sequence[float], different: int, chance: np.random.Generator) -> Figures:
    if different < LEAST:
        reason = f"no interval: {different} different registries drawn, of {LEAST} needed"
        return missing((name,), reason) | Figures(bare={name: Bare(mean(values), len(values))})
    return Figures(found={name: bootstrapped(mean, chance, values)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Asks drawn registries; one encoder serves all of them."""

    dataset: Dataset
    product: Product
    encoder: BatchingEncoder

    async def shares(self, sample: DrawnRegistry, rules: DrawRules) -> Shares:
        """The shares of one draw, with these replicas and twins."""
        chosen = {one: self.dataset.agents[one] for one in sample.capabilities}
        fresh = fleet(chosen, replicas=rules.replicas, twins=rules.twins)
        registry = await register(self.product, self.encoder, fresh)
        return shares_of(sample, await route_all(registry, sample.rows))


def shares_of(sample: DrawnRegistry, routed: Sequence[RoutedRow]) -> Shares:
    """The shares of one draw; `routed` are the `sample.rows` after routing."""
    ends = len(sample.inside), len(sample.inside) + len(sample.far)
    inside, far, near = routed[: ends[0]], routed[ends[0] : ends[1]], routed[ends[1] :]
    shares = {"lost": lost_share(inside).value, "top1": right_share(inside).value}
    accepted = {
        name: mean([one.in_scope for one in rows]) for name, rows in (("far", far), ("near", near)) if rows
    }
    return {name: rounded(value) for name, value in (shares | accepted).items()}


def _sample(dataset: Dataset, asked: Sequence[Capability], size: int, chance: random.Random) -> DrawnRegistry:
    """Capabilities that somebody asks for come first: a registry that nobody asks says nothing."""
    others = [one for one in dataset.agents if one not in set(asked)]
    drawn = chance.sample(list(asked), min(size, len(asked)))
    drawn += chance.sample(others, size - len(drawn))
    known = set(drawn)
    near = [row for row in dataset.requests if row.wanted and row.wanted.isdisjoint(known)]
    return DrawnRegistry(
        capabilities=tuple(drawn),
        inside=tuple(row for row in dataset.requests if row.wanted and row.wanted <= known),
        far=tuple(row for row in dataset.requests if not row.wanted),
        near=tuple(chance.sample(near, min(len(near), MOST_NEAR))),
    )
