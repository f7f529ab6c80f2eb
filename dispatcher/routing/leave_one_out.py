"""How a registry's own examples would be routed if each had not been registered.

An example is left out of every agent of its capability, else two equal agents would vouch for each
other. Two capabilities of which each scores above the other at half of its left-out examples or more
are twins: one thing under two names. Either winning is right as far as scope is concerned, and neither
counts for the other's examples, as if they were one capability.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import Capability
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.prototype import Prototype, stack, unit

MAX_ROWS = 4096
MAX_CELLS = 8_000_000
"""Bounds of one table, 32 MB; a larger registry gives fewer examples, the first of each capability first."""
TWIN_SHARE = 0.5

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """All prototypes in key order, and where each capability's begin."""

    prototypes: tuple[Prototype, ...]
    totals: Vectors
    capabilities: tuple[Capability, ...]
    starts: NDArray[np.intp]

    def cosines(self, queries: Vectors) -> Floats:
        """Each query (row) with each key (column); one column of zeros where nothing is registered."""
        if not self.prototypes:
            return np.zeros((len(queries), 1), dtype=np.float32)
        return queries @ unit(self.totals).T


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """One row per capability and example; `weight`s sum to their number, capabilities weigh the same."""

    vectors: Vectors
    best: Floats
    """The best cosine, twins not counted."""
    holders: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Pairs of a row and the position of a key that it is left out of."""
    owners: int
    """Capabilities that gave examples."""
    right: NDArray[np.bool_]
    weight: Floats
    twins: frozenset[tuple[Capability, Capability]]


def registered(prototypes: Sequence[Prototype], dimensions: int) -> Registered:
    """Arrange prototypes, given in key order."""
    names = [prototype.key.capability for prototype in prototypes]
    starts = [at for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    return Registered(
        prototypes=tuple(prototypes),
        totals=stack(prototypes, dimensions),
        capabilities=tuple(names[at] for at in starts),
        starts=np.array(starts, dtype=np.intp),
    )


def leave_one_out(registry: Registered) -> LeftOut | None:
    """Route every example without itself; None where no agent gave any."""
    rows = _rows(registry)
    if not rows:
        return None
    vectors = np.stack([row.vector for row in rows])
    owners, owner = np.unique([row.owner for row in rows], return_inverse=True)
    holders = _holders(rows)
    cosines = _cosines(registry, holders, vectors)
    scores = np.maximum.reduceat(cosines, registry.starts, axis=1)
    own = scores[np.arange(len(rows)), owners[owner]]
    twins = _twins(scores[:, owners] > own[:, None], owner)
    scores[:, owners] = np.where(twins[owner], -1.0, scores[:, owners])
    best = scores.max(axis=1)
    names = [registry.capabilities[one] for one in owners]
    pairs = np.argwhere(np.triu(twins)).tolist()
    return LeftOut(
        vectors=vectors,
        best=best,
        holders=holders,
        owners=len(owners),
        right=own >= best,
        weight=(len(rows) / (len(owners) * np.bincount(owner)[owner])).astype(np.float32),
        twins=frozenset((names[one], names[other]) for one, other in pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    owner: int
    vector: Vectors
    holders: tuple[int, ...]
    """Positions of the keys that it is left out of."""


def _rows(registry: Registered) -> list[_Row]:
    """The examples in the order in which they are taken: the first of every capability, the second, ..."""
    ranked: list[tuple[int, int, _Row]] = []
    edges = [*registry.starts.tolist(), len(registry.prototypes)]
    for owner, (start, end) in enumerate(pairwise(edges)):
        ranked += ((turn, owner, row) for turn, row in enumerate(_group_rows(registry, owner, (start, end))))
    limit = min(MAX_ROWS, max(MAX_CELLS // max(len(registry.prototypes), 1), 1))
    return [row for _, _, row in sorted(ranked, key=lambda item: item[:2])[:limit]]


def _group_rows(registry: Registered, owner: int, span: tuple[int, int]) -> list[_Row]:
    holders: dict[str, list[int]] = {}
    vectors: dict[str, Vectors] = {}
    for position in range(*span):
        prototype = registry.prototypes[position]
        for text, vector in zip(prototype.examples, prototype.example_vectors, strict=True):
            holders.setdefault(text, []).append(position)
            vectors[text] = vector
    return [_Row(owner=owner, vector=vectors[text], holders=tuple(holders[text])) for text in sorted(holders)]


def _holders(rows: Sequence[_Row]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    at = np.array([row for row, found in enumerate(rows) for _ in found.holders], dtype=np.intp)
    holder = np.array([position for row in rows for position in row.holders], dtype=np.intp)
    return at, holder


def _cosines(
    registry: Registered, holders: tuple[NDArray[np.intp], NDArray[np.intp]], vectors: Vectors
) -> Floats:
    """Each example with each key, its holders taken without it."""
    sums = vectors @ registry.totals.T
    lengths = np.linalg.norm(registry.totals, axis=1)
    cosines: Floats = sums / np.maximum(lengths, np.finfo(np.float32).tiny)
    at, holder = holders
    norm = (vectors**2).sum(axis=1)[at]
    left = np.sqrt(np.maximum(lengths[holder] ** 2 - 2 * sums[at, holder] + norm, 1e-12))
    cosines[at, holder] = (sums[at, holder] - norm) / left
    return cosines


def _twins(beats: NDArray[np.bool_], owner: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which owners are twins, as a symmetric table; `beats` says which owners score above each row's."""
    order = np.argsort(owner, kind="stable")
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    counts = np.bincount(owner)[:, None]
    taken = np.add.reduceat(beats[order].astype(np.float32), starts, axis=0) >= TWIN_SHARE * counts
    return np.asarray(taken & taken.T)
