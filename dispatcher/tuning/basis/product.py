"""The product's own routing path over a fresh registry: planner, router, choice and live view."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from dispatcher.clock import Clock, SystemClock
from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.dispatch.planning import Planned, Planner
from dispatcher.identifiers import Capability
from dispatcher.intents.decompose import RuleDecomposer
from dispatcher.intents.segment import DecomposeRules
from dispatcher.registry.view import LiveView
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.decision import Decision
from dispatcher.routing.embedder import Embedder
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.prototype_store import IndexFactory
from dispatcher.routing.router import Query, Ranking, Router
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.use_encoder import UseEncoder
from dispatcher.tuning.basis.fleet import ENVIRONMENT, Fleet, live_view

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
PAYLOAD_BYTES = 2048
"""Of each task frame; below every agent's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What is measured. `clock` times decisions; `index` names the index with its version."""

    embedder: Embedder
    make_index: IndexFactory
    index: str
    rules: RoutingRules
    clock: Clock
    batch_size: int = 64
    """Texts that the encoder gets at a time."""


class AtNoon:
    """Implements `dispatcher.clock.Calendar`: results don't depend on the day."""

    def now(self) -> datetime:
        """Always the same noon."""
        return NOON


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshRegistry:
    """A registered fleet, ready to be asked."""

    fleet: Fleet
    view: LiveView
    router: Router
    planner: Planner

    async def plan(self, text: str) -> Planned:
        """Understand a message as a chat request is understood."""
        return await self.planner.plan(ChatMessage(message=text, environment=ENVIRONMENT))

    def decide(self, ranking: Ranking) -> Decision:
        """Who takes a text of one wish."""
        return self.router.decide(_query(ranking.text, None, 0.0), ranking)

    def decide_all(self, planned: Planned) -> Sequence[Decision]:
        """Who takes each intent of a plan."""
        return [
            self.router.decide(
                _query(intent.text, intent.capability, intent.confidence), planned.ranking(intent.position)
            )
            for intent in planned.plan.intents
        ]

    def meant(self, capability: Capability) -> Capability:
        """The data set's capability that a registered one stands for."""
        return self.fleet.stands_for[capability]


def product_of(
    embedder: Embedder, rules: RoutingRules, *, index: str = "exact", batch_size: int = 64
) -> Product:
    """What routes with this encoder and these rules; `index` is `exact` or `faiss`."""
    is_faiss = index == "faiss"
    return Product(
        embedder=embedder,
        batch_size=batch_size,
        make_index=FaissIndex if is_faiss else ExactIndex,
        index=f"faiss-cpu {version('faiss-cpu')}" if is_faiss else f"exact, numpy {version('numpy')}",
        rules=rules,
        clock=SystemClock(),
    )


def packaged(rules: RoutingRules | None = None) -> Product:
    """What a dispatcher without settings routes with: the packaged encoder, an exact index, the defaults."""
    return product_of(UseEncoder(), rules or RoutingRules())


@contextmanager
def encoding(product: Product, texts: int) -> Iterator[BatchingEncoder]:
    """The encoder of a run of about so many texts: none of them is encoded twice."""
    batching = BatchingEncoder(product.embedder, cache_size=2 * texts + 1000, batch_size=product.batch_size)
    try:
        yield batching
    finally:
        batching.close()


async def synced_router(product: Product, encoder: BatchingEncoder, view: LiveView, version: int) -> Router:
    """A router of its own that has followed what the view holds, as this version of the registry."""
    router = Router(
        encoder=encoder,
        directory=view,
        make_index=product.make_index,
        rules=product.rules,
        clock=product.clock,
    )
    await router.sync(view.agents(), version)
    return router


async def register(product: Product, encoder: BatchingEncoder, fleet: Fleet) -> FreshRegistry:
    """Register a fleet in a registry of its own."""
    view = live_view(fleet.agents)
    router = await synced_router(product, encoder, view, view.version)
    planner = Planner(
        decomposer=RuleDecomposer(DecomposeRules()),
        router=router,
        contracts=lambda: view.contracts,
        calendar=AtNoon(),
    )
    return FreshRegistry(fleet=fleet, view=view, router=router, planner=planner)


def _query(text: str, capability: Capability | None, similarity: float) -> Query:
    return Query(
        text=text,
        capability=capability,
        similarity=similarity,
        allows=lambda _capability: True,
        environment=ENVIRONMENT,
        payload_bytes=PAYLOAD_BYTES,
        tried=frozenset(),
        now=NOON,
    )
