"""What people ask for and nobody here does: refused texts in groups that mean the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Embedder, Vectors

MAX_TEXTS = 5_000
"""Texts that are compared with each other (100 MB); beyond, an even sample of them is."""
SHOWN = 5
PIECE = 64
"""Texts encoded at a time: an encoder's memory grows with its batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Texts near each other, the most central ones first, at most `SHOWN`; `count` counts all of them.

    `closeness` is the mean cosine of its texts with their centre, in [-1, 1].
    """

    count: int
    texts: Sequence[str]
    closeness: float


def encode_in_pieces(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of any number of texts; raises as the encoder does."""
    pieces = [embedder.encode(texts[at : at + PIECE]) for at in range(0, len(texts), PIECE)]
    return np.concatenate(pieces) if pieces else np.zeros((0, embedder.dimensions), dtype=np.float32)


def find_gaps(texts: Sequence[str], vectors: Vectors, *, nearness: float, least: int) -> list[Gap]:
    """Groups of at least `least` texts, largest first; `vectors` are unit rows, one for each text.

    A text that repeats counts each time. Leader clustering in order of how many neighbours a text has:
    each group is the text with the most neighbours at cosine `nearness` or more that are in no group
    yet, together with these. Texts with too few neighbours are in no group.
    """
    chosen = _sample(len(texts))
    texts, vectors = [texts[at] for at in chosen], vectors[chosen]
    near = vectors @ vectors.T >= nearness
    left = np.ones(len(texts), dtype=np.bool_)
    gaps = []
    while left.any():
        counts = np.where(left, (near & left).sum(axis=1), 0)
        leader = int(counts.argmax())
        if counts[leader] < least:
            break
        members = np.flatnonzero(near[leader] & left)
        gaps.append(_gap(texts, vectors, members))
        left[members] = False
    return gaps


def _sample(count: int) -> NDArray[np.intp]:
    if count <= MAX_TEXTS:
        return np.arange(count)
    return np.linspace(0, count - 1, MAX_TEXTS).astype(np.intp)


def _gap(texts: Sequence[str], vectors: Vectors, members: NDArray[np.intp]) -> Gap:
    centre = vectors[members].mean(axis=0)
    closeness = vectors[members] @ (centre / max(float(np.linalg.norm(centre)), 1e-12))
    order = members[np.argsort(-closeness, kind="stable")]
    distinct = list(dict.fromkeys(texts[at] for at in order))
    return Gap(count=len(members), texts=distinct[:SHOWN], closeness=float(closeness.mean()))
