"""Encoders behind one protocol: texts in, unit vectors out."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    `encode` is blocking, thread-safe and deterministic: the same text gives the same vector,
    alone or in a batch (within 1e-5). Cosines of different `encoder_id`s are never compared.
    """

    @property
    def encoder_id(self) -> str:
        """Name and version of model and text preparation; stored with everything computed from it."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimensions), rows of length 1; an all-zero row for a text without content."""
        ...
