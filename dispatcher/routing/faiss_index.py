"""The index on FAISS: `IndexFlatIP` with ids of our own, so that keys come and go without a rebuild."""

from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors
from dispatcher.routing.index import Scores, check_vectors, within
from dispatcher.routing.slots import Key, Slots


class FaissIndex:
    """Fulfils `index.VectorIndex`; FAISS is kept to one thread, for the whole process."""

    def __init__(self, encoder_id: str, dimensions: int) -> None:
        faiss.omp_set_num_threads(1)
        self._wanted = (encoder_id, dimensions)
        self._slots = Slots()
        self._index = faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))

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
        self.remove(key)
        ids = np.array([self._slots.put(key)], dtype=np.int64)
        self._index.add_with_ids(np.ascontiguousarray(vector[None, :], dtype=np.float32), ids)

    def remove(self, key: Key) -> None:
        """See `VectorIndex`."""
        slot = self._slots.remove(key)
        if slot is not None:
            self._index.remove_ids(faiss.IDSelectorBatch(np.array([slot], dtype=np.int64)))

    def scores(self, queries: Vectors, encoder_id: str, limit: int) -> Scores:
        """See `VectorIndex`.

        A scan for everything in range costs a tenth more than one for the best few; to have the
        best thousands in order costs twice as much.
        """
        check_vectors(queries, self._wanted, encoder_id)
        if not len(self._slots) or not len(queries):
            return np.zeros((len(queries), len(self._slots)), dtype=np.float32)
        ends, found, slots = self._index.range_search(
            np.ascontiguousarray(queries, dtype=np.float32), -np.inf
        )
        rows = [self._by_key(found[a:b], slots[a:b]) for a, b in pairwise(ends.tolist())]
        return within(limit, np.array(rows))

    def _by_key(self, found: Scores, slots: NDArray[np.int64]) -> Scores:
        row = np.zeros(self._slots.size, dtype=np.float32)
        row[slots] = found
        return row[self._slots.order]
