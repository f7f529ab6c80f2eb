"""Encoders behind one protocol: texts in, unit vectors out."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dispatcher.errors import ConfigurationError, UnavailableError

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

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        """Shape (len(texts), dimensions), rows of length 1; an all-zero row for a text without content.

        What people say is a query: requests, examples, the background. What describes a capability is
        a passage; only encoders that were trained on two kinds of text tell them apart.
        """
        ...


class TextRefusedError(UnavailableError):
    """The encoder works, but does not take one of these texts; by themselves the others may be taken."""


def unit_rows(
    texts: Sequence[str], dimensions: int, encode: Callable[[list[str]], object], named: str = "the encoder"
) -> Vectors:
    """The rows of a library that knows no empty texts, as `Embedder.encode` gives them.

    `encode` gets the texts with content only. Raises UnavailableError where its answer has another
    shape than asked for, or holds what is no finite number.
    """
    vectors = np.zeros((len(texts), dimensions), dtype=np.float32)
    filled = [row for row, text in enumerate(texts) if text.strip()]
    if filled:
        found = np.asarray(encode([texts[row] for row in filled]), dtype=np.float32)
        if found.shape != (len(filled), dimensions):
            wanted = f"({len(filled)}, {dimensions})"
            raise UnavailableError(f"{named} gave vectors of shape {found.shape} instead of {wanted}")
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise UnavailableError(f"{named} gave a vector that holds no finite numbers")
        vectors[filled] = found / np.maximum(lengths, np.finfo(np.float32).tiny)
    return vectors


def load_package(package: str, missing: str) -> Any:  # noqa: ANN401 - the packages have no types
    """Import what an encoder needs; ConfigurationError, with the sentence `missing`, if it is not there."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{package}.".startswith(f"{error.name}."):
            raise ConfigurationError(missing) from None
        raise ConfigurationError(
            f"the package {package!r} can't be loaded: {error.name!r} is missing"
        ) from None
