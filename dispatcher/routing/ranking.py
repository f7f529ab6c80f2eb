"""Which capability a text asks for: every registered one scored, whether its agents are up or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.fitting import Fitted
from dispatcher.routing.index import DECIMALS
from dispatcher.routing.ordering import layout_of
from dispatcher.routing.prototype_store import Table
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.shadow import ShadowScope
from dispatcher.routing.slots import Key

Floats = NDArray[np.float32]


class AgentCosines(Mapping[AgentId, float]):
    """The cosine of each agent of a capability, put together when somebody looks: mostly nobody does."""

    __slots__ = ("_agents", "_cosines", "_found")

    def __init__(self, agents: Sequence[AgentId], cosines: Sequence[float]) -> None:
        self._agents = agents
        self._cosines = cosines
        self._found: dict[AgentId, float] | None = None

    def __getitem__(self, agent_id: AgentId) -> float:
        if self._found is None:
            self._found = dict(zip(self._agents, self._cosines, strict=True))
        return self._found[agent_id]

    def __iter__(self) -> Iterator[AgentId]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def __repr__(self) -> str:
        return repr(dict(self))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A text's capabilities, best first, at most 21; empty where nothing is registered.

    `scope_score` is the best cosine of all minus `contrast`; the text is in scope from `scope_floor`
    on, if the winner's similarity is at or above the published floor as well. `scale` is the unit
    of the margin. Where a language model had a say in it (`advice`, names of `decision.Advice`), the
    capability that it chose comes first and is in scope. `shadow` is what the calibration in shadow says.
    """

    text: str
    capabilities: tuple[CapabilityScore, ...]
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
        return 1 + sum(len(entry.agent_cosines) for entry in self.capabilities)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The keys of one capability: `start` to `end` of all."""

    capability: Capability
    agents: Sequence[AgentId]
    start: int
    end: int


class Ranker:
    """Turns tables of scores into rankings; made anew whenever the keys or the calibration change."""

    def __init__(self, keys: Sequence[Key], fitted: Fitted, rules: RoutingRules, version: int) -> None:
        self._groups = _groups(keys)
        starts = np.array([group.start for group in self._groups], dtype=np.intp)
        self._layout = layout_of(starts, len(keys))
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
        scores = (
            self._ordering.scores(*row, self._layout)
            for row in zip(turned, table.cosines, lexical_shares(table), strict=True)
        )
        rows = zip(texts, table.cosines, scores, contrast.tolist(), strict=True)
        return (self._row(*row) for row in rows)

    def _row(self, text: str, cosines: Floats, scores: Floats, contrast: float) -> Ranking:
        order = best_first(scores, self._rules.neighbours_kept + 1)
        groups = [self._groups[at] for at in order.tolist()]
        if self._layout.is_single:
            best = cosines[order].tolist()
            agents = [[cosine] for cosine in best]
        else:
            agents = [cosines[group.start : group.end].tolist() for group in groups]
            best = list(map(max, agents))
        scope_score = float(cosines.max()) - contrast
        # The winner's is p(right | contrastive score), whoever has the best cosine.
        similarities = self._calibration.similarity(
            np.array([scope_score, *(cosine - contrast for cosine in best[1:])])
        ).tolist()
        floor = self._calibration.floor_of(groups[0].capability)
        in_scope = scope_score >= floor and similarities[0] >= self._rules.similarity_floor
        capabilities = tuple(
            CapabilityScore(group.capability, AgentCosines(group.agents, own), cosine, similarity, score)
            for group, own, cosine, similarity, score in zip(
                groups, agents, best, similarities, scores[order].tolist(), strict=True
            )
        )
        return self._ranking(text, capabilities, (scope_score, floor, contrast), in_scope=in_scope)

    def _in_shadow(self, winner: Capability | None, scope_score: float) -> ShadowScope | None:
        if self._shadow is None or winner is None:
            return None
        return self._shadow.scope(winner, scope_score, self._rules.similarity_floor)

    def _nothing(self, text: str) -> Ranking:
        return self._ranking(text, (), (0.0, self._calibration.floor, 0.0), in_scope=False)

    def _ranking(
        self,
        text: str,
        capabilities: tuple[CapabilityScore, ...],
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


def lexical_shares(table: Table) -> Floats:
    """1 for the best lexical match of a text, others in proportion; 0 where nothing is shared."""
    best = table.lexical.max(axis=1, keepdims=True)
    return np.asarray(table.lexical / np.maximum(best, np.finfo(np.float32).tiny), dtype=np.float32)


def best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """The positions of the `limit` highest scores, rounded, best first; ties by position."""
    # Methods, for numpy's functions around them cost more than these do on a few hundred scores.
    rounded = scores.round(DECIMALS)
    beyond = len(rounded) - limit
    if beyond <= 0:
        return (-rounded).argsort(kind="stable")
    found = (rounded >= np.partition(rounded, beyond)[beyond]).nonzero()[0]
    order: NDArray[np.intp] = found[(-rounded[found]).argsort(kind="stable")][:limit]
    return order


def _groups(keys: Sequence[Key]) -> Sequence[_Group]:
    """The sorted keys by capability."""
    groups = []
    for capability, found in groupby(enumerate(keys), key=lambda one: one[1].capability):
        places = list(found)
        groups.append(
            _Group(
                capability=capability,
                agents=[key.agent_id for _, key in places],
                start=places[0][0],
                end=places[-1][0] + 1,
            )
        )
    return groups
