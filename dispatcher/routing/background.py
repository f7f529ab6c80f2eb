"""The fixed set of utterances that no agent is for: what "none of them" looks like to the encoder."""

import hashlib
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors

NEAREST = 40
"""How many background utterances the contrastive score looks at: about a tenth of them."""
CONTRAST = 1.0
"""How much of their mean cosine it takes off; both chosen on development data (`docs/tuning.md`)."""


def background_texts() -> tuple[str, ...]:
    """The utterances, Chinese and English, that ship with the package (ours, CC0)."""
    text = files("dispatcher.routing").joinpath("background.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def contrast_digest() -> str:
    """Names what is taken off a text's cosines: scores under another one can't be compared. 12 characters."""
    said = "\n".join([f"{NEAREST} {CONTRAST}", *background_texts()])
    return hashlib.sha256(said.encode()).hexdigest()[:12]


class Contrast:
    """What is taken off a query's best cosine: the mean of its nearest background cosines."""

    def __init__(self, background: Vectors) -> None:
        # As columns side by side: the product with a single query takes two thirds of the time.
        self._columns = np.ascontiguousarray(background.T)

    def of(self, queries: Vectors) -> NDArray[np.float32]:
        """One for each query."""
        return _nearest(queries.dot(self._columns))


def contrast_of(queries: Vectors, background: Vectors) -> NDArray[np.float32]:
    """The same of many queries against a background that is not asked again."""
    return _nearest(queries @ background.T)


def contrast_of_background(background: Vectors) -> NDArray[np.float32]:
    """The same for the background utterances, each compared with the others only."""
    cosines = background @ background.T
    others = cosines[~np.eye(len(cosines), dtype=np.bool_)].reshape(len(cosines), len(cosines) - 1)
    return _nearest(others)


def _nearest(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """CONTRAST times the mean of each row's best; the rows are put into another order."""
    kept = min(NEAREST, cosines.shape[1])
    cosines.partition(cosines.shape[1] - kept, axis=1)
    # What `mean` does, without the functions around it: they cost as much as the sum of a row.
    nearest: NDArray[np.float32] = np.add.reduce(cosines[:, -kept:], axis=1) / np.float32(kept / CONTRAST)
    return nearest
