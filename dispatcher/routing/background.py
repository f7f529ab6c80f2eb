"""The fixed set of utterances that no agent is for: what "none of them" looks like to the encoder."""

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors

NEAREST = 3
"""How many background utterances the contrastive score looks at."""
CONTRAST = 0.5
"""How much of their mean cosine it takes off."""


def background_texts() -> tuple[str, ...]:
    """The utterances, Chinese and English, that ship with the package (ours, CC0)."""
    text = files("dispatcher.routing").joinpath("background.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line)


def contrast_of(queries: Vectors, background: Vectors) -> NDArray[np.float32]:
    """What is taken off each query's best cosine: half the mean of its nearest background cosines."""
    return CONTRAST * _nearest(queries @ background.T)


def contrast_of_background(background: Vectors) -> NDArray[np.float32]:
    """The same for the background utterances, each compared with the others only."""
    cosines = background @ background.T
    np.fill_diagonal(cosines, -1.0)
    return CONTRAST * _nearest(cosines)


def _nearest(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    nearest: NDArray[np.float32] = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
    return nearest
