"""Which capabilities are taken for one another, by examples that each were left out once. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.routing.embedder import Vectors
from dispatcher.tuning.basis.rows import UNKNOWN_LANGUAGE, AgentRow, RequestRow
from dispatcher.tuning.evaluation.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A registry in which every capability lacks one example, and these examples as requests."""

    agents: Mapping[Capability, AgentRow]
    requests: tuple[RequestRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Shares of the row's left-out examples that the column won; rows without examples are all 0."""

    names: tuple[Capability, ...]
    shares: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two capabilities: cosine of their vectors, and the examples of either that the other won."""

    one: Capability
    other: Capability
    cosine: float
    taken: int


def rounds(agents: Mapping[Capability, AgentRow]) -> Iterator[Round]:
    """As many registries as the capability with most examples has: in the nth all lack their nth one."""
    most = max((len(row.examples) for row in agents.values()), default=0)
    for at in range(most):
        left = {name: row.examples[at] for name, row in agents.items() if at < len(row.examples)}
        yield Round(
            agents={name: _without(row, at) for name, row in agents.items()},
            requests=tuple(
                RequestRow(text=text, language=UNKNOWN_LANGUAGE, wanted=frozenset((name,)))
                for name, text in left.items()
            ),
        )


def overlap(names: Iterable[Capability], verdicts: Iterable[Verdict]) -> Overlap:
    """The table of all capabilities, sorted by name."""
    ordered = tuple(sorted(names))
    place = {name: at for at, name in enumerate(ordered)}
    counts = np.zeros((len(ordered), len(ordered)), dtype=np.float32)
    for own, won in _won(verdicts):
        counts[place[own], place[won]] += 1
    totals = counts.sum(axis=1, keepdims=True)
    return Overlap(names=ordered, shares=counts / np.maximum(totals, 1))


def confused(found: Overlap, least: float) -> Overlap:
    """Only those of which another wins the share `least` or more, or that win it from another."""
    apart = found.shares * (1 - np.eye(len(found.names), dtype=np.float32))
    kept = np.flatnonzero((apart >= least).any(axis=0) | (apart >= least).any(axis=1))
    names = tuple(found.names[at] for at in kept.tolist())
    return Overlap(names=names, shares=found.shares[np.ix_(kept, kept)])


def nearest_pairs(names: Sequence[Capability], vectors: Vectors, verdicts: Iterable[Verdict]) -> list[Pair]:
    """All pairs, the one with most examples taken first, then by cosine; `vectors` are unit rows."""
    cosines = vectors @ vectors.T
    taken = Counter(frozenset(pair) for pair in _won(verdicts))
    pairs = [
        Pair(
            one=names[one],
            other=names[other],
            cosine=float(cosines[one, other]),
            taken=taken[frozenset((names[one], names[other]))],
        )
        for one, other in combinations(range(len(names)), 2)
    ]
    return sorted(pairs, key=lambda pair: (-pair.taken, -pair.cosine, pair.one, pair.other))


def _without(row: AgentRow, at: int) -> AgentRow:
    return replace(row, examples=row.examples[:at] + row.examples[at + 1 :])


def _won(verdicts: Iterable[Verdict]) -> Iterator[tuple[Capability, Capability]]:
    """Whose example, and which capability won it."""
    for one in verdicts:
        if one.best:
            yield min(one.row.wanted), one.best[0]
