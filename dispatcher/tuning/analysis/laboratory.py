"""Runs of the product that notebooks ask for: one data set, many registries, one encoder."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.encode_declared import encode_declared, said_of
from dispatcher.tuning.analysis.example_gain import Learnt, learnt, limited
from dispatcher.tuning.analysis.messages import Heard
from dispatcher.tuning.analysis.overlap import rounds
from dispatcher.tuning.basis.dataset import Dataset, read_dataset
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.product import FreshRegistry, Product, encoding, packaged, register
from dispatcher.tuning.basis.rows import AgentRow, RequestRow, unregistered_rows
from dispatcher.tuning.decisions.decision_log import Entry, read_entries
from dispatcher.tuning.evaluation.asking import intents_of, route_all
from dispatcher.tuning.evaluation.routed import RoutedRow

DATA = Path("notebooks") / "data"
MANY = 5_000
"""Texts of a run that are encoded once."""

Agents = Mapping[Capability, AgentRow]


def sample(here: Path) -> Dataset:
    """The data set that ships with the notebooks; `here` is the repository or a folder in it."""
    return read_dataset(_data(here) / "shopdesk")


def sample_decisions(here: Path) -> list[Entry]:
    """The simulated week beside it; `dispatcher export decisions` writes one of your own."""
    return list(read_entries(_data(here) / "decisions.jsonl"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One registry asked: what became of each request, and the calibration by which that was judged."""

    routed: list[RoutedRow]
    calibration: Calibration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """One product whose encoder is shared by all registries made here."""

    product: Product
    encoder: BatchingEncoder

    async def registry(self, agents: Agents) -> FreshRegistry:
        """One idle agent of each capability."""
        return await register(self.product, self.encoder, fleet(agents))

    async def routed(self, agents: Agents, requests: Sequence[RequestRow]) -> list[RoutedRow]:
        """What routing makes of the requests when these agents are registered, but for registered texts."""
        return (await self.run(agents, requests)).routed

    async def run(self, agents: Agents, requests: Sequence[RequestRow]) -> Run:
        """The same, with what the registry calibrated itself to."""
        registry = await self.registry(agents)
        routed = await route_all(registry, unregistered_rows(requests, agents))
        return Run(routed=routed, calibration=registry.router.calibration)

    async def left_out(self, agents: Agents) -> list[RoutedRow]:
        """What routing makes of each example when it is not registered; see `overlap.rounds`."""
        found: list[RoutedRow] = []
        for one in rounds(agents):
            found += await self.routed(one.agents, one.requests)
        return found

    async def beside(
        self, registries: Sequence[Agents], requests: Sequence[RequestRow]
    ) -> list[list[RoutedRow]]:
        """The same requests asked of each registry: those whose text none of them has registered."""
        asked = unregistered_rows(requests, *registries)
        return [await self.routed(agents, asked) for agents in registries]

    async def learning_curve(
        self, agents: Agents, requests: Sequence[RequestRow], counts: Sequence[int]
    ) -> list[Learnt]:
        """The same requests asked of registries whose agents have so many examples each."""
        runs = await self.beside([limited(agents, count) for count in counts], requests)
        return [learnt(count, routed) for count, routed in zip(counts, runs, strict=True)]

    async def vectors(self, agents: Agents) -> Vectors:
        """The unit vector of each capability, in the agents' order."""
        said = [said_of(agent, None) for agent in fleet(agents).agents]
        made = await encode_declared(self.encoder, said)
        return np.stack([made[key].vector for one in said for key in one.texts])

    async def heard(self, agents: Agents, messages: Sequence[RequestRow]) -> list[Heard]:
        """What the planner makes of messages."""
        given = await intents_of(await self.registry(agents), messages)
        return [Heard(row=row, intents=one) for row, one in zip(messages, given, strict=True)]


@asynccontextmanager
async def laboratory(product: Product | None = None) -> AsyncIterator[Laboratory]:
    """A laboratory of the packaged product, or of this one; leaving gives its encoder back."""
    chosen = product or packaged()
    with encoding(chosen, MANY) as encoder:
        yield Laboratory(product=chosen, encoder=encoder)


def _data(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / DATA).is_dir():
            return folder / DATA
    raise ConfigurationError(f"neither {str(here)!r} nor a folder above it holds {str(DATA)!r}")
