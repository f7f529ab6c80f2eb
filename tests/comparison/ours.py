"""Our side, in our environment: the product's own parts, put together as `dispatcher eval` does."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median

from threadpoolctl import threadpool_limits

from dispatcher.assembly.encoders import embedding
from dispatcher.assembly.rules import routing_rules
from dispatcher.clock import SystemClock
from dispatcher.identifiers import Capability
from dispatcher.routing.batcher import BatchingEncoder
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.index import ExactIndex
from dispatcher.settings import Settings, load_settings
from dispatcher.tuning.basis.dataset import Dataset
from dispatcher.tuning.basis.fleet import fleet
from dispatcher.tuning.basis.product import FreshRegistry, Product, encoding, register
from dispatcher.tuning.basis.rows import AgentRow
from dispatcher.tuning.basis.versions import versions
from dispatcher.tuning.evaluation.asking import route_all
from dispatcher.tuning.evaluation.routed import RoutedRow
from tests.comparison.figures import fitting_half
from tests.comparison.material import Material, Route, Row, all_texts
from tests.comparison.sample import WARM


@dataclass(frozen=True, slots=True, kw_only=True)
class OurSide:
    """A data set and the product; the encoder within remembers every text that it has seen."""

    product: Product
    encoder: BatchingEncoder
    dataset: Dataset

    async def material(self) -> Material:
        """All texts with their vectors, and what we make of each request."""
        registry = await self._registry()
        requests = self.dataset.requests
        routed = await route_all(registry, requests)
        routes = _routes(self.dataset.agents)
        texts = all_texts(routes, [row.text for row in requests])
        return Material(
            about={"dataset": self.dataset.name, **versions(self.product, self.dataset)},
            routes=routes,
            rows=_rows(routed),
            texts=texts,
            vectors=await self.encoder.encode(texts),
        )

    async def milliseconds(self, texts: Sequence[str]) -> dict[str, float]:
        """Median times without encoding: vectors are looked up. The first WARM texts do not count.

        `ours, ranking`: which capability, accepted or not; `ours`: the same and which agent;
        `ours, known`: the same about a text that was asked before. In a registry of its own, because one
        that has seen a text remembers its ranking.
        """
        registry = await self._registry()
        rounds = [await self._timed(registry, text) for text in texts][WARM:]
        again = [await self._timed(registry, text) for text in texts][WARM:]
        return {
            "ours, ranking": median(ranked for ranked, _ in rounds),
            "ours": median(whole for _, whole in rounds),
            "ours, known": median(whole for _, whole in again),
        }

    async def _timed(self, registry: FreshRegistry, text: str) -> tuple[float, float]:
        """Milliseconds until it is known what a text is for, if for anything, and until it is decided."""
        clock = self.product.clock
        started = clock.monotonic()
        ranking = (await registry.router.rank([text]))[0]
        _ = ranking.winner if ranking.in_scope else None
        ranked = clock.monotonic()
        registry.decide(ranking)
        return (ranked - started) * 1000, (clock.monotonic() - started) * 1000

    async def _registry(self) -> FreshRegistry:
        return await register(self.product, self.encoder, fleet(self.dataset.agents))


@contextmanager
def our_side(dataset: Dataset) -> Iterator[OurSide]:
    """The product with the settings of this environment, on one thread as it runs."""
    settings = load_settings()
    texts = len(dataset.requests) + dataset.examples + 8 * len(dataset.agents)
    with threadpool_limits(limits=1), embedding(settings.encoder) as embedder:
        is_faiss = settings.routing.index == "faiss"
        product = Product(
            embedder=embedder,
            batch_size=settings.encoder.batch_size,
            make_index=FaissIndex if is_faiss else ExactIndex,
            index=_index(settings),
            rules=routing_rules(settings),
            clock=SystemClock(),
        )
        with encoding(product, texts) as encoder:
            yield OurSide(product=product, encoder=encoder, dataset=dataset)


def _index(settings: Settings) -> str:
    package = "faiss-cpu" if settings.routing.index == "faiss" else "numpy"
    return f"{settings.routing.index}, {package} {version(package)}"


def _routes(agents: Mapping[Capability, AgentRow]) -> list[Route]:
    return [
        Route(name=name, descriptions=list(row.descriptions), examples=list(row.examples))
        for name, row in agents.items()
    ]


def _rows(routed: Sequence[RoutedRow]) -> list[Row]:
    wanted = [sorted(one.row.wanted) for one in routed]
    halves = fitting_half([tuple(names) for names in wanted])
    return [
        Row(
            text=one.row.text,
            wanted=names,
            is_for_fitting=half,
            chosen=one.best[0],
            accepted=one.in_scope,
        )
        for one, names, half in zip(routed, wanted, halves, strict=True)
    ]
