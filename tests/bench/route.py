"""One routing decision among 1,000 agents, beside one bare vector search among as many."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count, product

import faiss
import numpy as np

from dispatcher.clock import SystemClock
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import CapabilityDeclaration, Declaration
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.router import Query, Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.use_encoder import UseEncoder
from tests.bench.timing import Timing, measure, print_table

VERBS = ("track", "cancel", "return", "repair", "rate", "insure", "gift-wrap", "compare", "reorder", "donate")
THINGS = (
    *("parcel", "phone", "laptop", "coat", "bicycle", "sofa", "camera", "kettle", "ticket", "watch"),
    *("lamp", "tent", "piano", "carpet", "drill", "stroller", "printer", "ring", "helmet", "fridge"),
)
AGENTS_EACH = 5
SEARCHED = 20
RUNS = 300


class AllIdle:
    """Every agent is up and has nothing to do."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._groups: dict[str, list[Agent]] = defaultdict(list)
        for agent in agents:
            for capability in agent.declaration.capabilities:
                self._groups[capability.name].append(agent)

    def group(self, capability: Capability) -> Sequence[Agent]:
        """See `registry.live.AgentDirectory`."""
        return self._groups[capability]

    def status(self, agent_id: AgentId) -> AgentStatus:
        """See `registry.live.AgentDirectory`."""
        return AgentStatus(liveness=Liveness.ALIVE, capacity=8, running=0, draining=False)

    def success(self, agent_id: AgentId, capability: Capability) -> float:
        """See `registry.live.AgentDirectory`."""
        return 0.8


def fleet() -> list[Agent]:
    """200 capabilities of five agents each."""
    return [
        Agent(
            agent_id=AgentId(f"{verb}-{thing}-{number}"),
            declaration=Declaration(capabilities=[_capability(verb, thing)]),
            digest=f"{verb}-{thing}",
            environment="production",
        )
        for verb, thing, number in product(VERBS, THINGS, range(AGENTS_EACH))
    ]


def _capability(verb: str, thing: str) -> CapabilityDeclaration:
    return CapabilityDeclaration(
        name=f"{verb}.{thing}",
        descriptions=[f"Helps customers to {verb} a {thing} they bought."],
        examples=[f"please {verb} my {thing}", f"how do I {verb} this {thing}?", f"{verb} the {thing} today"],
    )


def _query(text: str) -> Query:
    return Query(
        text=text,
        capability=None,
        similarity=1.0,
        allows=lambda _capability: True,
        environment="production",
        payload_bytes=512,
        tried=frozenset(),
        now=datetime(2025, 1, 1, tzinfo=UTC),
    )


async def bare_search(vectors: int, dimensions: int) -> Timing:
    """A flat inner-product index asked for the best few of random unit vectors."""
    random = np.random.default_rng(0).standard_normal((vectors, dimensions)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(dimensions)
    index.add(random)

    async def search() -> None:
        index.search(random[:1], SEARCHED)

    return await measure("bare FAISS flat search", search, runs=RUNS)


async def run() -> None:
    """Print the table."""
    agents, clock, encoder = fleet(), SystemClock(), BatchingEncoder(UseEncoder())
    router = Router(
        encoder=encoder, directory=AllIdle(agents), make_index=FaissIndex, rules=RoutingRules(), clock=clock
    )
    await router.sync(agents, 1)
    known, new = "could you track my parcel", count()
    [ranking] = await router.rank([known])

    async def decide() -> None:
        router.decide(_query(known), ranking)

    timings = [
        await bare_search(len(agents), encoder.dimensions),
        await measure("decide, ranked before", decide, runs=RUNS),
        await measure("rank a text seen before", lambda: router.rank([known]), runs=RUNS),
        await measure("encode a new text", lambda: encoder.encode([f"{known} {next(new)}"]), runs=RUNS),
        await measure("rank a new text", lambda: router.rank([f"{known} {next(new)}"]), runs=RUNS),
    ]
    encoder.close()
    print_table(f"Routing among {len(agents)} agents", timings)
