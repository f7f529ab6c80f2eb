"""Which capability a text asks for: every registered one scored, whether its agents are up or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.catalogue import Table
from dispatcher.routing.embedder import Vectors
from dispatcher.routing.fitting import Fitted
from dispatcher.routing.index import DECIMALS, NOT_SEARCHED
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.shadow import ShadowScope
from dispatcher.routing.slots import Key

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityScore:
    """How well a text fits one capability.

    `cosine` is the best agent's, `similarity` its calibrated p in [0, 1]; `score` is the cosine
    with the lexical share added, which decides the order.
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

    def cosines(self, of_all: Floats) -> list[float]:
        own: list[float] = of_all[self.start : self.end].tolist()
        return own


class Ranker:
    """Turns tables of scores into rankings; made anew whenever the keys or the calibration change."""

    def __init__(self, keys: Sequence[Key], fitted: Fitted, rules: RoutingRules, version: int) -> None:
        self._groups = _groups(keys)
        self._starts = np.array([group.start for group in self._groups], dtype=np.intp)
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
        lexical = lexical_shares(table)
        scores = (
            self._ordering.scores(*row, self._starts)
            for row in zip(vectors, table.cosines, lexical, strict=True)
        )
        rows = zip(texts, table.cosines, scores, contrast.tolist(), strict=True)
        return (self._row(*row) for row in rows)

    def _row(self, text: str, cosines: Floats, scores: Floats, contrast: float) -> Ranking:
        order = best_first(scores, self._rules.neighbours_kept + 1)
        groups = [self._groups[at] for at in order.tolist()]
        agents = [group.cosines(cosines) for group in groups]
        best = [max(one) for one in agents]
        scope_score = float(cosines.max()) - contrast
        # The winner's is p(right | contrastive score), whoever has the best cosine.
        similarities = self._calibration.similarity(
            np.array([scope_score, *(cosine - contrast for cosine in best[1:])])
        ).tolist()
        floor = self._calibration.floor_of(groups[0].capability)
        in_scope = scope_score >= floor and similarities[0] >= self._rules.similarity_floor
        capabilities = tuple(
            CapabilityScore(
                capability=group.capability,
                agent_cosines={
                    agent: value
                    for agent, value in zip(group.agents, own, strict=True)
                    if value > NOT_SEARCHED
                },
                cosine=cosine,
                similarity=similarity,
                score=score,
            )
            for group, own, cosine, similarity, score in zip(
                groups, agents, best, similarities, scores[order].tolist(), strict=True
            )
        )
        shadow = self._in_shadow(groups[0].capability, scope_score)
        made = self._ranking(text, capabilities, (scope_score, floor, contrast), in_scope=in_scope)
        return made if shadow is None else replace(made, shadow=shadow)

    def _in_shadow(self, winner: Capability, scope_score: float) -> ShadowScope | None:
        if self._shadow is None:
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
        )


def lexical_shares(table: Table) -> Floats:
    """1 for the best lexical match of a text, others in proportion; 0 where nothing is shared."""
    best = table.lexical.max(axis=1, keepdims=True)
    return np.asarray(table.lexical / np.maximum(best, np.finfo(np.float32).tiny), dtype=np.float32)


def best_first(scores: Floats, limit: int) -> NDArray[np.intp]:
    """The positions of the `limit` highest scores, rounded, best first; ties by position."""
    rounded = np.round(scores, DECIMALS)
    beyond = max(len(rounded) - limit, 0)
    found = np.flatnonzero(rounded >= np.partition(rounded, beyond)[beyond])
    order: NDArray[np.intp] = found[np.argsort(-rounded[found], kind="stable")][:limit]
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
