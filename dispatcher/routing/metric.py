"""How near a text is to a capability, once directions in which any capability's texts differ count less.

The metric is the inverse of A = a·W + (1 - a)·I, where W is the spread of a capability's texts about
their mean, pooled over all capabilities, with the trace of I, and a = rows / (rows + PRIOR_ROWS): the
within-class covariance of linear discriminant analysis (Fisher, 1936), shrunk to the identity as in
Ledoit and Wolf (2004), with a fixed prior. It decides the order of capabilities only; scope and
calibrated similarity stay on the plain cosine. What it is worth is written in `docs/tuning.md`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors
from dispatcher.routing.leave_one_out import Registered

PRIOR_ROWS = 1000.0
"""So many rows of spread weigh as much as the identity; 500 to 2,000 do equally well (512 dimensions)."""
MAX_ROWS = 8192
"""Texts that the metric is made from; of a larger registry every n-th capability is taken."""
_TINY = 1e-12

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`matrix` is symmetric, (dimensions, dimensions); None stands for the identity."""

    matrix: Floats | None

    def turned(self, queries: Vectors) -> Vectors:
        """Rows whose product with a vector, times its `reach`, is the cosine of both under the metric."""
        if self.matrix is None:
            return queries
        turned = queries.dot(self.matrix)
        for row, query in zip(turned, queries, strict=True):
            np.divide(row, max(math.sqrt(max(row.dot(query), 0.0)), _TINY), out=row)
        return np.asarray(turned)

    def reach(self, vectors: Vectors) -> Floats:
        """One over the length of each row under the metric; large for an all-zero row: its products are 0."""
        turned = vectors if self.matrix is None else vectors @ self.matrix
        squares = np.einsum("ij,ij->i", turned, vectors)
        return np.asarray(1 / np.sqrt(np.maximum(squares, _TINY)), dtype=np.float32)


IDENTITY = Metric(matrix=None)


def fit_metric(registry: Registered) -> Metric:
    """The metric of a registry; the identity where no capability has two texts that differ.

    Each text counts once for its capability, however many agents give it: equal agents make nothing surer.
    """
    groups = [one for one in _texts(registry) if len(one) > 1]
    if not groups:
        return IDENTITY
    rows = sum(len(group) - 1 for group in groups)
    apart = np.concatenate([group - group.mean(axis=0) for group in groups])
    spread = (apart.T @ apart).astype(np.float64)
    trace = float(np.trace(spread))
    if trace <= 1e-9:
        return IDENTITY
    dimensions = len(spread)
    share = rows / (rows + PRIOR_ROWS)
    mixed = share * spread * (dimensions / trace) + (1 - share) * np.eye(dimensions)
    return Metric(matrix=np.linalg.inv(mixed).astype(np.float32))


def _texts(registry: Registered) -> Sequence[Vectors]:
    """The vectors of each capability's texts, each text once; of evenly chosen ones where they are many."""
    edges = [*registry.starts.tolist(), len(registry.prototypes)]
    total = sum(len(prototype.texts) for prototype in registry.prototypes)
    step = -(-total // MAX_ROWS)
    found = []
    for start, end in list(pairwise(edges))[:: max(step, 1)]:
        own = {
            text: vector
            for prototype in registry.prototypes[start:end]
            for text, vector in zip(prototype.texts, prototype.vectors, strict=True)
        }
        found.append(np.stack(list(own.values())))
    return found
