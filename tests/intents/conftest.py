"""Rankers for the decomposer: one by keywords, one on the real encoder and the evaluation data."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.clock import SystemClock
from dispatcher.dispatch.planning import span_rank
from dispatcher.identifiers import Capability
from dispatcher.intents.plan import SpanRank
from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.registry.agent import Agent
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.router import Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.use_encoder import UseEncoder
from tests.routing.conftest import MemoryDirectory, build_agent

Row = dict[str, Any]


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


class KeepingEncoder:
    """The packaged encoder; each text is encoded once in a session. Implements `batcher.TextEncoder`."""

    def __init__(self) -> None:
        self._model = UseEncoder()
        self._known: dict[str, Vectors] = {}

    encoder_id = UseEncoder.encoder_id
    dimensions = UseEncoder.dimensions

    async def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 64):
            batch = new[start : start + 64]
            self._known.update(zip(batch, self._model.encode(batch), strict=True))
        return np.stack([self._known[text] for text in texts])


class RoutedRanker:
    """Ranks as requests are ranked, floors included."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, texts: Sequence[str]) -> Sequence[SpanRank]:
        return [span_rank(ranking) for ranking in await self._router.rank(texts)]


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def packaged() -> KeepingEncoder:
    return KeepingEncoder()


@pytest.fixture
def keyword_ranker() -> Callable[[Mapping[str, Sequence[str]]], KeywordRanker]:
    return KeywordRanker


@pytest.fixture(scope="session")
def rows(data_dir: Path) -> Callable[[str], list[Row]]:
    return cache(lambda name: read_rows(data_dir / name))


@pytest.fixture(scope="session")
def routers() -> dict[str, Router]:
    """Routers that follow the agents of a data set already, by its name."""
    return {}


@pytest.fixture
def routed(rows, packaged, routers) -> Callable[[str], Awaitable[RoutedRanker]]:
    """A ranker over the agents of a data set, which are registered once in a session."""

    async def build(name: str) -> RoutedRanker:
        if name not in routers:
            router = Router(
                encoder=packaged,
                directory=MemoryDirectory(),
                make_index=ExactIndex,
                rules=RoutingRules(),
                clock=SystemClock(),
            )
            await router.sync([_agent(row) for row in rows(f"{name}/agents.jsonl")], 1)
            routers[name] = router
        return RoutedRanker(routers[name])

    return build


def _agent(row: Row) -> Agent:
    declared = CapabilityDeclaration(
        name=row["id"], descriptions=[row["desc_zh"], row["desc_en"]], examples=row["examples"]
    )
    return build_agent(row["id"].strip("_"), declared)
