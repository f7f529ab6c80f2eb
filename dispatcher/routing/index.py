"""How near each registered vector is: the contract, and the exact index that others are checked against."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dispatcher.errors import ConfigurationError
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.slots import Key, Slots

STEPS = np.float32(1e6)
"""Scores are rounded to so many steps, so that equal vectors tie on every machine."""

NOT_SEARCHED = -1.0
"""The score of a key beyond the search limit: the lowest there is."""

Scores = NDArray[np.float32]
"""One row for each query, one column for each key, in key order."""


class VectorIndex(Protocol):
    """Unit vectors by key. Each change touches its own key only; vectors of other encoders are refused."""

    @property
    def encoder_id(self) -> str:
        """The encoder whose vectors it holds."""
        ...

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, sorted."""
        ...

    def put(self, key: Key, vector: Vectors, encoder_id: str) -> None:
        """Add or replace one key; raises ConfigurationError for another encoder or length."""
        ...

    def remove(self, key: Key) -> None:
        """Forget one key; nothing happens where it is not there."""
        ...

    def scores(self, queries: Vectors, encoder_id: str, limit: int) -> Scores:
        """The dot products of each row of `queries` with the `limit` best keys, ties by key.

        All other keys have NOT_SEARCHED. Raises ConfigurationError as `put` does.
        """
        ...


def check_vectors(vectors: Vectors, wanted: tuple[str, int], encoder_id: str) -> None:
    """Raise ConfigurationError unless the vectors come from the wanted (encoder id, dimensions)."""
    given = (encoder_id, vectors.shape[-1])
    if given != wanted:
        raise ConfigurationError(
            f"the index holds vectors of {wanted[0]!r} with {wanted[1]} dimensions, "
            f"not of {given[0]!r} with {given[1]}"
        )


def within(limit: int, scores: Scores) -> Scores:
    """The scores, rounded, of the `limit` best of each row, ties by position; NOT_SEARCHED elsewhere.

    They are changed in place.
    """
    # What `np.round` does, in a third of its time for a few hundred scores.
    np.rint(np.multiply(scores, STEPS, out=scores), out=scores)
    np.divide(scores, STEPS, out=scores)
    beyond = scores.shape[1] - limit
    if beyond <= 0:
        return scores
    for row in scores:
        lowest = np.partition(row, beyond)[beyond]
        ties, better = np.flatnonzero(row == lowest), np.count_nonzero(row > lowest)
        row[row < lowest] = NOT_SEARCHED
        row[ties[limit - better :]] = NOT_SEARCHED
    return scores


class ExactIndex:
    """One matrix and one product; 0.06 ms at 1,000 vectors.

    A copy in key order is made at the first search after a change: 2 ms and 2 MB for 1,000 vectors.
    """

    def __init__(self, encoder_id: str, dimensions: int) -> None:
        self._wanted = (encoder_id, dimensions)
        self._slots = Slots()
        self._matrix = np.zeros((16, dimensions), dtype=np.float32)
        self._in_order: Vectors | None = None

    @property
    def encoder_id(self) -> str:
        """See `VectorIndex`."""
        return self._wanted[0]

    @property
    def keys(self) -> tuple[Key, ...]:
        """See `VectorIndex`."""
        return self._slots.keys

    def put(self, key: Key, vector: Vectors, encoder_id: str) -> None:
        """See `VectorIndex`."""
        check_vectors(vector, self._wanted, encoder_id)
        slot = self._slots.put(key)
        if slot >= len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[slot] = vector
        self._in_order = None

    def remove(self, key: Key) -> None:
        """See `VectorIndex`."""
        self._slots.remove(key)
        self._in_order = None

    def scores(self, queries: Vectors, encoder_id: str, limit: int) -> Scores:
        """See `VectorIndex`."""
        check_vectors(queries, self._wanted, encoder_id)
        if self._in_order is None:
            self._in_order = self._matrix[self._slots.order]
        return within(limit, queries.dot(self._in_order.T))
