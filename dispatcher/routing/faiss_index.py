"""The index on FAISS: `IndexFlatIP` with ids of our own, so that keys come and go without a rebuild."""

import faiss
import numpy as np

from dispatcher.routing.embedder import Vectors
from dispatcher.routing.index import DECIMALS, Hits, check_vectors
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

    def search(self, queries: Vectors, encoder_id: str, limit: int) -> Hits:
        """See `VectorIndex`."""
        check_vectors(queries, self._wanted, encoder_id)
        count = len(self._slots)
        wanted = min(limit, count)
        if not wanted or not len(queries):
            shape = (len(queries), wanted)
            return Hits(np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=np.float32))
        hits = self._ask(queries, min(wanted + 1, count))
        if wanted < count and (hits.scores[:, wanted - 1] == hits.scores[:, wanted]).any():
            # A tie across the limit: FAISS keeps either, so let the keys decide among all.
            hits = self._ask(queries, count)
        return Hits(hits.positions[:, :wanted], hits.scores[:, :wanted])

    def _ask(self, queries: Vectors, count: int) -> Hits:
        scores, slots = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), count)
        position_of = np.zeros(self._slots.size, dtype=np.intp)
        position_of[self._slots.order] = np.arange(len(self._slots))
        positions, rounded = position_of[slots], np.round(scores, DECIMALS)
        order = np.lexsort((positions, -rounded), axis=1)
        return Hits(np.take_along_axis(positions, order, axis=1), np.take_along_axis(rounded, order, axis=1))
