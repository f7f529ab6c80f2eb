"""Which capabilities are taken for one another, by examples that each were left out once. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.routing.embedder import Vectors
from dispatcher.tuning.basis.rows import UNKNOWN_LANGUAGE, AgentRow, RequestRow, same_text
from dispatcher.tuning.evaluation.routed import RoutedRow


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
    """As many registries as the capability with most examples has: in the nth all lack their nth one.

    An example that is asked is registered nowhere: who has the same text (`rows.same_text`) lacks it too.
    What somebody has as a description is not asked, and nothing of one capability is asked twice.
    """
    asked = {name: _askable(row, agents.values()) for name, row in agents.items()}
    most = max(map(len, asked.values()), default=0)
    for at in range(most):
        texts = {name: own[at] for name, own in asked.items() if at < len(own)}
        known = frozenset(map(same_text, texts.values()))
        yield Round(
            agents={name: _without(row, known) for name, row in agents.items()},
            requests=tuple(
                RequestRow(text=text, language=UNKNOWN_LANGUAGE, wanted=frozenset((name,)))
                for name, text in texts.items()
            ),
        )


def overlap(names: Iterable[Capability], routed: Iterable[RoutedRow]) -> Overlap:
    """The table of all capabilities, sorted by name."""
    ordered = tuple(sorted(names))
    place = {name: at for at, name in enumerate(ordered)}
    counts = np.zeros((len(ordered), len(ordered)), dtype=np.float32)
    for own, won in _won(routed):
        counts[place[own], place[won]] += 1
    totals = counts.sum(axis=1, keepdims=True)
    return Overlap(names=ordered, shares=counts / np.maximum(totals, 1))


def confused(found: Overlap, least: float) -> Overlap:
    """Only those of which another wins the share `least` or more, or that win it from another."""
    apart = found.shares * (1 - np.eye(len(found.names), dtype=np.float32))
    kept = np.flatnonzero((apart >= least).any(axis=0) | (apart >= least).any(axis=1))
    names = tuple(found.names[at] for at in kept.tolist())
    return Overlap(names=names, shares=found.shares[np.ix_(kept, kept)])


def nearest_pairs(names: Sequence[Capability], vectors: Vectors, routed: Iterable[RoutedRow]) -> list[Pair]:
    """All pairs, the one with most examples taken first, then by cosine; `vectors` are unit rows."""
    cosines = vectors @ vectors.T
    taken = Counter(frozenset(pair) for pair in _won(routed))
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


def _askable(row: AgentRow, agents: Iterable[AgentRow]) -> list[str]:
    """The examples that are no description of anybody's, each once."""
    described = {same_text(text) for agent in agents for text in agent.descriptions}
    own = {same_text(text): text for text in reversed(row.examples)}
    return [text for key, text in reversed(own.items()) if key not in described]


def _without(row: AgentRow, known: Set[str]) -> AgentRow:
    return replace(row, examples=tuple(text for text in row.examples if same_text(text) not in known))


def _won(routed: Iterable[RoutedRow]) -> Iterator[tuple[Capability, Capability]]:
    """Whose example, and which capability won it."""
    for one in routed:
        if one.best:
            yield min(one.row.wanted), one.best[0]
