"""From declarations to prototypes: descriptions encoded as passages, examples as what people say.

So an example that calibration leaves out is encoded exactly as a request would be. With an encoder
that knows both kinds of text (multilingual-e5-small, our own bilingual set) requests out of scope are
told apart better than with examples as passages: AUROC 0.991 against 0.964, accuracy within noise.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from dispatcher.routing.batcher import TextEncoder
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.prototype import DeclaredTexts, Prototype, build_prototype
from dispatcher.routing.slots import Key

SYNC_BATCH = 64
"""Texts of declarations that are encoded at a time, so that requests get their turn in between."""


async def encode_declared(encoder: TextEncoder, wanted: Mapping[Key, DeclaredTexts]) -> dict[Key, Prototype]:
    """The prototype of each key, every text encoded once; raises as the encoder does."""
    described = (text for texts in wanted.values() for text in texts.descriptions)
    said = (text for texts in wanted.values() for text in texts.examples)
    passages = await _encode(encoder, described, as_passages=True)
    queries = await _encode(encoder, said, as_passages=False)
    prototypes = {}
    for key, texts in wanted.items():
        vectors = [*map(passages.__getitem__, texts.descriptions), *map(queries.__getitem__, texts.examples)]
        prototypes[key] = build_prototype(key, texts, np.stack(vectors))
    return prototypes


async def _encode(encoder: TextEncoder, texts: Iterable[str], *, as_passages: bool) -> dict[str, Vectors]:
    unique = list(dict.fromkeys(texts))
    vector_of: dict[str, Vectors] = {}
    for start in range(0, len(unique), SYNC_BATCH):
        batch = unique[start : start + SYNC_BATCH]
        vector_of |= zip(batch, await encoder.encode(batch, as_passages=as_passages), strict=True)
    return vector_of
