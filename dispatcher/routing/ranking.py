"""Which capability a text asks for: every registered one scored, whether its agents are up or not."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import Struct
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.fitting import Fitted
from dispatcher.routing.index import STEPS
from dispatcher.routing.ordering import layout_of
from dispatcher.routing.prototype_store import Table
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.shadow import ShadowScope
from dispatcher.routing.slots import Key

Floats = NDArray[np.float32]


class CapabilityScore(NamedTuple):
    """How well a text fits one capability.

    `cosine` is the best agent's, NOT_SEARCHED where none was within the search limit; `agent_cosines` has
    every agent that was registered then. `similarity` is p in [0, 1], calibrated from the cosine, of a
    ranking's best capability from the text's `scope_score`. `score` decides the order: the best agent's
    cosine under the registry's metric with its lexical share added, and of those beyond the metric's
    shortlist the plain one, less 4. A ranking has 21 of them: a tuple is made in a third of a dataclass's
    time.
    """

    capability: Capability
    agent_cosines: Mapping[AgentId, float]
    cosine: float
    similarity: float
    score: float = 0.0


class Ranked(Sequence[CapabilityScore]):  # noqa: PLW1641 - its entries hold mappings, which have no hash
    """A ranking's capabilities. Those behind the best are put together when somebody looks at one of them."""

    __slots__ = ("_best", "_found", "_others", "size")

    def __init__(
        self, best: CapabilityScore, size: int, others: Callable[[], Iterable[CapabilityScore]]
    ) -> None:
        self._best = best
        self._others: Callable[[], Iterable[CapabilityScore]] | None = others
        self._found: tuple[CapabilityScore, ...] = ()
        self.size = size

    @property
    def all(self) -> tuple[CapabilityScore, ...]:
        """The best one and all others."""
        if self._others is not None:
            self._found, self._others = (self._best, *self._others()), None
        return self._found

    @overload
    def __getitem__(self, at: int) -> CapabilityScore: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[CapabilityScore, ...]: ...

    def __getitem__(self, at: int | slice) -> CapabilityScore | tuple[CapabilityScore, ...]:
        return self._best if at == 0 else self.all[at]

    def __iter__(self) -> Iterator[CapabilityScore]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranked | tuple) and self.all == tuple(other)

    def __repr__(self) -> str:
        return repr(self.all)


class Ranking(Struct, frozen=True, kw_only=True):
    """A text's capabilities, best first, at most 21; empty where nothing is registered.

    `scope_score` is the best cosine of all minus `contrast`; the text is in scope from `scope_floor`
    on, if the winner's similarity is at or above the published floor as well. `scale` is the unit
    of the margin. Where a language model had a say in it (`advice`, names of `decision.Advice`), the
    capability that it chose comes first and is in scope. `shadow` is what the calibration in shadow says.
    """

    text: str
    capabilities: Sequence[CapabilityScore]
    scope_score: float
    scope_floor: float
    in_scope: bool
    encoder_id: str
    registry_version: int
    calibration: str
    contrast: float = 0.0
    scale: float = 0.0
    advice: tuple[str, ...] = ()
    shadow: ShadowScope | None = None

    @property
    def winner(self) -> CapabilityScore | None:
        """The best capability, in scope or not."""
        return self.capabilities[0] if self.capabilities else None

    @property
    def size(self) -> int:
        """What remembering it costs, in agents; at least 1."""
        found = self.capabilities
        if isinstance(found, Ranked):
            return found.size
        return 1 + sum(len(entry.agent_cosines) for entry in found)


class _Group(NamedTuple):
    """The keys of one capability, by agent, and where the first of them is among all."""

    capability: Capability
    agents: Sequence[AgentId]
    start: int


class Ranker:
    """Turns tables of scores into rankings; made anew whenever the keys or the calibration change."""

    def __init__(self, keys: Sequence[Key], fitted: Fitted, rules: RoutingRules, version: int) -> None:
        self._groups = _groups(keys)
        starts = np.array([group.start for group in self._groups], dtype=np.intp)
        self._layout = layout_of(starts, len(keys))
        self._places = [np.arange(group.start, group.start + len(group.agents)) for group in self._groups]
        self._calibration = fitted.used
        self._shadow = fitted.shadow
        self._ordering = fitted.ordering
        self._rules = rules
        self._version = version

    def rank(
        self, texts: Sequence[str], vectors: Vectors, table: Table, contrast: Floats
    ) -> Iterator[Ranking]:
        """One ranking for each row of the table; `contrast` is taken off each row's cosines."""
        if not self._groups:
            return (self._nothing(text) for text in texts)
        turned = self._ordering.metric.turned(vectors)
        rows = zip(texts, turned, *table, contrast.tolist(), strict=True)
        return (self._row(*row) for row in rows)

    def _row(self, text: str, turned: Vectors, cosines: Floats, lexical: Floats, contrast: float) -> Ranking:
        calibration, ordering = self._calibration, self._ordering
        scores = ordering.scores(turned, cosines, ordering.shares(lexical), self._layout)
        order = best_first(scores, self._rules.neighbours_kept + 1)
        scope_score = float(np.maximum.reduce(cosines)) - contrast
        # The winner's is p(right | contrastive score), whoever has the best cosine.
        similarity = calibration.similarity_of(scope_score)
        winner, others = order.item(0), order[1:]
        best = self._score(winner, cosines[self._places[winner]].tolist(), similarity, scores.item(winner))
        floor = calibration.floor_of(best.capability)
        own = cosines[self._places_of(others)]
        size = 1 + len(best.agent_cosines) + len(own)
        return self._ranking(
            text,
            # Copies of what is needed of it: the table is that of all texts and keys.
            Ranked(best, size, partial(self._others, others, own, scores[others], contrast)),
            (scope_score, floor, contrast),
            in_scope=scope_score >= floor and similarity >= self._rules.similarity_floor,
        )

    def _places_of(self, order: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where the keys of these capabilities are, one capability after the other."""
        if self._layout.is_single or not len(order):
            return order
        return np.concatenate([self._places[at] for at in order.tolist()])

    def _score(self, at: int, own: Sequence[float], similarity: float, score: float) -> CapabilityScore:
        capability, agents, _ = self._groups[at]
        return CapabilityScore(capability, dict(zip(agents, own, strict=True)), max(own), similarity, score)

    def _others(
        self, order: NDArray[np.intp], own: Floats, scores: Floats, contrast: float
    ) -> Iterator[CapabilityScore]:
        """Those behind the winner; `own` are the cosines of their keys, one capability after the other."""
        if not len(order):
            return
        ends = self._layout.sizes[order].cumsum()
        starts = ends - self._layout.sizes[order]
        best = np.maximum.reduceat(own, starts)
        similarities = self._calibration.similarity(best.astype(np.float64) - contrast)
        cosines = own.tolist()
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        rows = zip(order.tolist(), spans, similarities.tolist(), scores.tolist(), strict=True)
        for at, (start, end), similarity, score in rows:
            yield self._score(at, cosines[start:end], similarity, score)

    def _in_shadow(self, winner: Capability | None, scope_score: float) -> ShadowScope | None:
        if self._shadow is None or winner is None:
            return None
        return self._shadow.scope(winner, scope_score, self._rules.similarity_floor)

    def _nothing(self, text: str) -> Ranking:
        return self._ranking(text, (), (0.0, self._calibration.floor, 0.0), in_scope=False)

    def _ranking(
        self,
        text: str,
        capabilities: Sequence[CapabilityScore],
        scope: tuple[float, float, float],
        *,
        in_scope: bool,
    ) -> Ranking:
        winner = capabilities[0].capability if capabilities else None
        return Ranking(
            text=text,
            capabilities=capabilities,
            scope_score=scope[0],
            scope_floor=scope[1],
            in_scope=in_scope,
            encoder_id=self._calibration.encoder_id,
            registry_version=self._version,
            calibration=self._calibration.kind,
            contrast=scope[2],
            scale=self._ordering.scale,
            shadow=self._in_shadow(winner, scope[0]),
        )


def best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """The positions of the `limit` highest scores, rounded, best first; ties by position."""
    # Methods, for numpy's functions around them cost more than these do on a few hundred scores.
    behind: Floats = np.rint(scores * -STEPS)
    if len(behind) <= limit:
        return np.asarray(behind.argsort(kind="stable"))
    ordered = behind.copy()
    ordered.partition(limit - 1)
    found = (behind <= ordered[limit - 1]).nonzero()[0]
    order: NDArray[np.intp] = found[behind[found].argsort(kind="stable")][:limit]
    return order


def _groups(keys: Sequence[Key]) -> Sequence[_Group]:
    """The sorted keys by capability."""
    groups, start = [], 0
    for capability, found in groupby(keys, key=attrgetter("capability")):
        agents = [key.agent_id for key in found]
        groups.append(_Group(capability, agents, start))
        start += len(agents)
    return groups
