"""Everything registered, as routing keeps it: prototypes, vector index and lexical index in step."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors
from dispatcher.routing.index import Scores, VectorIndex
from dispatcher.routing.leave_one_out import Registered, registered
from dispatcher.routing.lexical import LexicalIndex, name_words
from dispatcher.routing.prototype import Prototype
from dispatcher.routing.slots import Key

IndexFactory = Callable[[str, int], VectorIndex]
"""Makes an empty index for an encoder id and its dimensions."""


class Table(NamedTuple):
    """Scores of several texts (rows) with every key (columns, in key order)."""

    cosines: Scores
    lexical: NDArray[np.float32]


class PrototypeStore:
    """Adding or removing a key touches nothing of the others."""

    def __init__(self, make_index: IndexFactory, encoder_id: str, dimensions: int) -> None:
        self._encoder = (encoder_id, dimensions)
        self._index = make_index(encoder_id, dimensions)
        self._lexical = LexicalIndex()
        self._prototypes: dict[Key, Prototype] = {}

    @property
    def prototypes(self) -> Mapping[Key, Prototype]:
        """What is registered; not for changing."""
        return self._prototypes

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, sorted."""
        return self._index.keys

    def apply(self, removed: Iterable[Key], added: Iterable[Prototype]) -> None:
        """Forget some keys, then add or replace others."""
        for key in removed:
            self._index.remove(key)
            self._lexical.remove(key)
            self._prototypes.pop(key, None)
        for prototype in added:
            self._index.put(prototype.key, prototype.vector, self._encoder[0])
            named = name_words(prototype.key.capability)
            self._lexical.put(prototype.key, (*prototype.texts, named))
            self._prototypes[prototype.key] = prototype

    def look_up(self, texts: Sequence[str], vectors: Vectors, limit: int) -> Table:
        """Cosines of the `limit` nearest keys of each text, and the lexical scores of all."""
        cosines = self._index.scores(vectors, self._encoder[0], limit)
        return Table(cosines=cosines, lexical=self._lexical.scores(texts))


def arrange(prototypes: Mapping[Key, Prototype], dimensions: int) -> Registered:
    """The prototypes in key order, as calibration wants them."""
    return registered([prototypes[key] for key in sorted(prototypes)], dimensions)
