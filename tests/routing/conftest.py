"""A registry in memory, and the evaluation data as agents of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.choice import Query
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.router import Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.use_encoder import UseEncoder

IDLE = AgentStatus(liveness=Liveness.ALIVE, capacity=8, running=0, draining=False)


@dataclass
class MemoryDirectory:
    """Implements `registry.live.AgentDirectory`; what is not set is idle and at the prior."""

    agents: list[Agent] = field(default_factory=list)
    statuses: dict[AgentId, AgentStatus] = field(default_factory=dict)
    successes: dict[AgentId, float] = field(default_factory=dict)
    _grouped: tuple[tuple[Agent, ...], Mapping[Capability, Sequence[Agent]]] = field(default=((), {}))

    def group(self, capability: Capability) -> Sequence[Agent]:
        if self._grouped[0] != tuple(self.agents):
            self._grouped = (tuple(self.agents), self._groups())
        return self._grouped[1].get(capability, ())

    def status(self, agent_id: AgentId) -> AgentStatus:
        return self.statuses.get(agent_id, IDLE)

    def success(self, agent_id: AgentId, _capability: Capability) -> float:
        return self.successes.get(agent_id, 0.8)

    def _groups(self) -> Mapping[Capability, list[Agent]]:
        groups: dict[Capability, list[Agent]] = {}
        for agent in sorted(self.agents, key=lambda one: one.agent_id):
            for capability in agent.declaration.capabilities:
                groups.setdefault(Capability(capability.name), []).append(agent)
        return groups


def build_agent(name: str, *capabilities: CapabilityDeclaration, **declared) -> Agent:
    declaration = Declaration(capabilities=list(capabilities), **declared)
    digest = f"{name}:{hash(declaration.model_dump_json())}"
    environment = declaration.environment or "production"
    return Agent(agent_id=AgentId(name), declaration=declaration, digest=digest, environment=environment)


def build_capability(name: str, *texts: str) -> CapabilityDeclaration:
    """The first text describes, the others are examples."""
    return CapabilityDeclaration(name=name, descriptions=[texts[0]], examples=list(texts[1:]))


def build_query(**given) -> Query:
    known: dict[str, Any] = {
        "text": "where is my parcel",
        "capability": None,
        "similarity": 0.0,
        "allows": lambda _: True,
        "environment": "production",
        "payload_bytes": 1000,
        "tried": frozenset(),
        "now": datetime(2026, 3, 2, 12, 0, tzinfo=UTC),
    }
    return Query(**(known | given))


@pytest.fixture
def directory() -> MemoryDirectory:
    return MemoryDirectory()


@pytest.fixture
def an_agent() -> Callable[..., Agent]:
    return build_agent


@pytest.fixture
def a_capability() -> Callable[..., CapabilityDeclaration]:
    return build_capability


@pytest.fixture
def a_query() -> Callable[..., Query]:
    return build_query


@pytest.fixture
def hashing():
    encoder = BatchingEncoder(HashingEncoder())
    yield encoder
    encoder.close()


@pytest.fixture
def router_of(directory, hashing) -> Callable[..., Router]:
    def build(rules: RoutingRules | None = None, encoder=hashing) -> Router:
        return Router(
            encoder=encoder,
            directory=directory,
            make_index=ExactIndex,
            rules=rules or RoutingRules(),
            clock=SystemClock(),
        )

    return build


class KeepingEmbedder:
    """The packaged encoder; each text is encoded once in a session. Implements `embedder.Embedder`."""

    encoder_id = UseEncoder.encoder_id
    dimensions = UseEncoder.dimensions

    def __init__(self) -> None:
        self._model = UseEncoder()
        self._known: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str], *, as_passages: bool = False) -> Vectors:
        del as_passages  # as the packaged encoder does
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known.update(zip(new, self._model.encode(new), strict=True))
        return np.array([self._known[text] for text in texts]).reshape(len(texts), self.dimensions)


@pytest.fixture(scope="session")
def use_model() -> KeepingEmbedder:
    return KeepingEmbedder()


@pytest.fixture
def multilingual(use_model):
    encoder = BatchingEncoder(use_model, cache_size=50_000)
    yield encoder
    encoder.close()


@pytest.fixture(scope="session")
def rows(data_dir: Path) -> Callable[[str], list[dict[str, Any]]]:
    return cache(
        lambda name: [json.loads(line) for line in (data_dir / name).read_text(encoding="utf-8").splitlines()]
    )


@pytest.fixture
def data_agents(rows) -> Callable[..., list[Agent]]:
    """The agents of a data set; `suffix` makes another agent of each capability, `twin` another tag."""

    def build(name: str, *, examples: int = 5, suffix: str = "", twin: str = "") -> list[Agent]:
        return [
            build_agent(
                row["id"].lower().strip("_")[:50] + suffix,
                CapabilityDeclaration(
                    name=row["id"].lower() + twin,
                    descriptions=[text for text in (row["desc_zh"], row["desc_en"]) if text],
                    examples=row["examples"][:examples],
                ),
            )
            for row in rows(f"{name}/agents.jsonl")
        ]

    return build
