"""What people ask for and nobody here does: refused texts in groups that mean the same."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Embedder, Vectors

MAX_TEXTS = 5_000
"""Texts that are compared with each other (100 MB)."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some of `count` texts, in their order."""

    texts: Sequence[str]
    count: int


def even_sample(texts: Iterable[str], most: int = MAX_TEXTS) -> Sample:
    """At most `most` of the texts, spread evenly over them; never more than twice as many in memory."""
    kept: list[str] = []
    count, step = 0, 1
    for text in texts:
        if count % step == 0:
            kept.append(text)
        count += 1
        if len(kept) > 2 * most:
            kept, step = kept[::2], 2 * step
    if len(kept) > most:
        kept = [kept[at] for at in np.linspace(0, len(kept) - 1, most).astype(np.intp)]
    return Sample(texts=kept, count=count)


def encode_in_pieces(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of any number of texts; raises as the encoder does."""
    pieces = [embedder.encode(texts[at : at + PIECE]) for at in range(0, len(texts), PIECE)]
    return np.concatenate(pieces) if pieces else np.zeros((0, embedder.dimensions), dtype=np.float32)


def find_gaps(texts: Sequence[str], vectors: Vectors, *, nearness: float, least: int) -> list[Gap]:
    """Groups of at least `least` texts, largest first; `vectors` are unit rows, one for each text.

    A text that repeats counts each time. Leader clustering in order of how many neighbours a text has:
    each group is the text with the most neighbours at cosine `nearness` or more that are in no group
    yet, together with these. Texts with too few neighbours are in no group. Memory grows with the square
    of the number of texts: see `even_sample`.
    """
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


def _gap(texts: Sequence[str], vectors: Vectors, members: NDArray[np.intp]) -> Gap:
    centre = vectors[members].mean(axis=0)
    closeness = vectors[members] @ (centre / max(float(np.linalg.norm(centre)), 1e-12))
    order = members[np.argsort(-closeness, kind="stable")]
    distinct = list(dict.fromkeys(texts[at] for at in order))
    return Gap(count=len(members), texts=distinct[:SHOWN], closeness=float(closeness.mean()))
