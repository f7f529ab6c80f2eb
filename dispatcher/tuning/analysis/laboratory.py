"""Runs of the product that notebooks ask for: one data set, many registries, one encoder."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.encode_declared import encode_declared
from dispatcher.routing.prototype import DeclaredTexts
from dispatcher.routing.slots import Key
from dispatcher.tuning.analysis.example_gain import Learnt, learnt, limited
from dispatcher.tuning.analysis.messages import Heard
from dispatcher.tuning.analysis.overlap import rounds
from dispatcher.tuning.basis.dataset import Dataset, read_dataset
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.product import Product, Registry, encoding, packaged, register
from dispatcher.tuning.basis.rows import AgentRow, RequestRow
from dispatcher.tuning.decisions.decision_log import Entry, read_entries
from dispatcher.tuning.evaluation.asking import rank_all, verdict
from dispatcher.tuning.evaluation.verdict import Verdict

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
class Laboratory:
    """One product whose encoder is shared by all registries made here."""

    product: Product
    encoder: BatchingEncoder

    async def registry(self, agents: Agents) -> Registry:
        """One idle agent of each capability."""
        return await register(self.product, self.encoder, fleet(agents))

    async def verdicts(self, agents: Agents, requests: Sequence[RequestRow]) -> list[Verdict]:
        """What routing makes of the requests when these agents are registered."""
        registry = await self.registry(agents)
        pairs = rank_all(registry, requests, lambda _: None)
        return [verdict(registry, row, ranking) async for row, ranking in pairs]

    async def calibration(self, agents: Agents) -> Calibration | None:
        """What the registry of these agents calibrates itself to."""
        return (await self.registry(agents)).router.calibration

    async def left_out(self, agents: Agents) -> list[Verdict]:
        """What routing makes of each example when it is not registered; see `overlap.rounds`."""
        found: list[Verdict] = []
        for one in rounds(agents):
            found += await self.verdicts(one.agents, one.requests)
        return found

    async def learning_curve(
        self, agents: Agents, requests: Sequence[RequestRow], counts: Sequence[int]
    ) -> list[Learnt]:
        """The requests asked of registries whose agents have so many examples each."""
        return [learnt(count, await self.verdicts(limited(agents, count), requests)) for count in counts]

    async def vectors(self, agents: Agents) -> Vectors:
        """The unit vector of each capability, in the agents' order."""
        wanted = {
            Key(name, AgentId(name)): DeclaredTexts(descriptions=row.descriptions, examples=row.examples)
            for name, row in agents.items()
        }
        made = await encode_declared(self.encoder, wanted)
        return np.stack([made[key].vector for key in wanted])

    async def heard(self, agents: Agents, messages: Sequence[RequestRow]) -> list[Heard]:
        """What the planner makes of messages."""
        registry = await self.registry(agents)
        found = []
        for row in messages:
            intents = (await registry.plan(row.text)).plan.intents
            found.append(Heard(row=row, intents=tuple(one.capability for one in intents)))
        return found


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
