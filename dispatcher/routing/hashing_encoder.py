"""An encoder without a model: hashed character n-grams. For tests, and where no model can be had."""

import zlib
from collections.abc import Sequence

import numpy as np

from dispatcher.routing.embedder import Vectors

DIMENSIONS = 512
SIZES = (1, 2, 3, 4)
"""Lengths of the n-grams, in characters."""


class HashingEncoder:
    """Texts that share characters are similar; it knows nothing of meaning.

    Deterministic over processes and machines: CRC-32 of each n-gram chooses its column and sign.
    """

    encoder_id = "hashing-ngram-1"
    dimensions = DIMENSIONS

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """See `embedder.Embedder`."""
        del as_passages  # an n-gram is one wherever it stands
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for gram in _grams(text):
                code = zlib.crc32(gram.encode("utf-8", "surrogatepass"))
                row[code % DIMENSIONS] += 1.0 if code & 0x8000_0000 else -1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny))


def _grams(text: str) -> list[str]:
    words = " ".join(text.lower().split())
    if not words:
        return []
    padded = f" {words} "
    return [padded[at : at + size] for size in SIZES for at in range(len(padded) - size + 1)]
