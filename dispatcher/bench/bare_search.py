"""One flat vector search and nothing else: the limit for a routing decision."""

import faiss
import numpy as np

SEARCHED = 20


class BareSearch:
    """A flat inner-product index of random unit vectors, on one thread."""

    def __init__(self, vectors: int, dimensions: int) -> None:
        faiss.omp_set_num_threads(1)
        random = np.random.default_rng(0).standard_normal((vectors, dimensions)).astype(np.float32)
        random /= np.linalg.norm(random, axis=1, keepdims=True)
        self._query = random[:1].copy()
        self._index = faiss.IndexFlatIP(dimensions)
        self._index.add(random)

    def search(self) -> None:
        """The best few for one query."""
        self._index.search(self._query, SEARCHED)
