"""From declarations to prototypes: descriptions encoded as passages, examples as what people say.

So an example that calibration leaves out is encoded exactly as a request would be. With an encoder
that knows both kinds of text (multilingual-e5-small, our own bilingual set) requests out of scope are
told apart better than with examples as passages: AUROC 0.991 against 0.964, accuracy within noise.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.agent import Agent
from dispatcher.routing.batcher import TextEncoder
from dispatcher.routing.embedder import TextRefusedError, Vectors
from dispatcher.routing.prototype import DeclaredTexts, Prototype, build_prototype, declared_texts
from dispatcher.routing.slots import Key

SYNC_BATCH = 32
"""Texts that are encoded at a time where nobody waits, so that requests get their turn in between."""


class Said(NamedTuple):
    """What routing depends on of one agent's declaration, and the digest of all of it."""

    digest: str
    texts: Mapping[Key, DeclaredTexts]


class Encoded(NamedTuple):
    """The prototypes of some agents, and those who have a text that the encoder does not take."""

    prototypes: dict[Key, Prototype]
    refused: frozenset[AgentId]


def said_of(agent: Agent, before: Said | None) -> Said:
    """What the agent says now; its `texts` are the same object as before where none of them changed."""
    if before is not None and before.digest == agent.digest:
        return before
    texts = {
        Key(Capability(one.name), agent.agent_id): declared_texts(one)
        for one in agent.declaration.capabilities
    }
    return Said(agent.digest, before.texts if before is not None and before.texts == texts else texts)


async def encode_takeable(encoder: TextEncoder, said: Mapping[AgentId, Said]) -> Encoded:
    """The prototypes of all agents whose texts the encoder takes; raises other errors of the encoder.

    Who is not taken is found by halves: what was encoded on the way is remembered.
    """
    try:
        return Encoded(await encode_declared(encoder, said.values()), frozenset())
    except TextRefusedError:
        if len(said) == 1:
            return Encoded({}, frozenset(said))
    every = list(said.items())
    middle = len(every) // 2
    one = await encode_takeable(encoder, dict(every[:middle]))
    other = await encode_takeable(encoder, dict(every[middle:]))
    return Encoded(one.prototypes | other.prototypes, one.refused | other.refused)


async def encode_declared(encoder: TextEncoder, said: Iterable[Said]) -> dict[Key, Prototype]:
    """The prototype of each key, every text encoded once; raises as the encoder does."""
    wanted = {key: texts for one in said for key, texts in one.texts.items()}
    described = (text for texts in wanted.values() for text in texts.descriptions)
    examples = (text for texts in wanted.values() for text in texts.examples)
    passages = await _encode(encoder, described, as_passages=True)
    queries = await _encode(encoder, examples, as_passages=False)
    prototypes = {}
    for key, texts in wanted.items():
        vectors = [*map(passages.__getitem__, texts.descriptions), *map(queries.__getitem__, texts.examples)]
        prototypes[key] = build_prototype(key, texts, np.stack(vectors))
    return prototypes


async def encode_pieces(encoder: TextEncoder, texts: Sequence[str]) -> Vectors:
    """One row for each of many texts, encoded as what people say; raises as the encoder does."""
    vectors = await _encode(encoder, texts, as_passages=False)
    return np.stack([vectors[text] for text in texts])


async def _encode(encoder: TextEncoder, texts: Iterable[str], *, as_passages: bool) -> dict[str, Vectors]:
    unique = list(dict.fromkeys(texts))
    vector_of: dict[str, Vectors] = {}
    for start in range(0, len(unique), SYNC_BATCH):
        batch = unique[start : start + SYNC_BATCH]
        vector_of |= zip(batch, await encoder.encode(batch, as_passages=as_passages), strict=True)
    return vector_of
