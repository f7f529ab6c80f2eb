"""One vector per agent and capability: the mean of what its developer wrote about it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.prepared import prepared
from dispatcher.routing.slots import Key

DESCRIPTION_WEIGHT = 1.0
"""Of a description, an example having 1. Between 1 and 2 accuracy is the same, at 0 it loses 3 points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prototype:
    """What routing keeps of one declaration: its texts, their unit vectors, and the weighted sum of these.

    Descriptions come before examples.
    """

    key: Key
    texts: tuple[str, ...]
    vectors: Vectors
    examples: tuple[str, ...]
    total: Vectors

    @property
    def example_vectors(self) -> Vectors:
        """Those of the examples."""
        return self.vectors[len(self.texts) - len(self.examples) :]

    @property
    def vector(self) -> Vectors:
        """The normalised mean."""
        return unit(self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTexts:
    """The texts that make a prototype, each once; an example that repeats a description is left out."""

    descriptions: tuple[str, ...]
    examples: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Descriptions, then examples: the order in which `build_prototype` wants their vectors."""
        return self.descriptions + self.examples


def declared_texts(capability: CapabilityDeclaration) -> DeclaredTexts:
    """The texts of a declared capability, as routing reads them."""
    descriptions = tuple(dict.fromkeys(map(prepared, capability.descriptions)))
    examples = tuple(
        text for text in dict.fromkeys(map(prepared, capability.examples)) if text not in descriptions
    )
    return DeclaredTexts(descriptions=descriptions, examples=examples)


def build_prototype(key: Key, texts: DeclaredTexts, vectors: Vectors) -> Prototype:
    """The prototype from the vectors of `texts.all`, in that order."""
    count = len(texts.descriptions)
    return Prototype(
        key=key,
        texts=texts.all,
        vectors=vectors,
        examples=texts.examples,
        total=DESCRIPTION_WEIGHT * vectors[:count].sum(axis=0) + vectors[count:].sum(axis=0),
    )


def unit(vectors: Vectors) -> Vectors:
    """The same directions at length 1; all-zero rows stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny))


def stack(prototypes: Sequence[Prototype], dimensions: int) -> Vectors:
    """The totals as the rows of one matrix, also of none."""
    if not prototypes:
        return np.zeros((0, dimensions), dtype=np.float32)
    return np.stack([prototype.total for prototype in prototypes])
