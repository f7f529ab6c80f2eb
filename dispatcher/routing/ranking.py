"""Which capability a text asks for: every registered one scored, whether its agents are up or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.catalogue import NOT_SEARCHED, Table
from dispatcher.routing.index import DECIMALS
from dispatcher.routing.rules import RoutingRules
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
    of the margin.
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

    @property
    def winner(self) -> CapabilityScore | None:
        """The best capability, in scope or not."""
        return self.capabilities[0] if self.capabilities else None


class Ranker:
    """Turns tables of scores into rankings; made anew whenever the keys or the calibration change."""

    def __init__(
        self, keys: Sequence[Key], calibration: Calibration, rules: RoutingRules, version: int
    ) -> None:
        self._keys = keys
        self._calibration = calibration
        self._rules = rules
        self._version = version
        starts = [at for at, key in enumerate(keys) if at == 0 or keys[at - 1].capability != key.capability]
        self._starts = np.array(starts, dtype=np.intp)
        self._ends = [*starts[1:], len(keys)]

    def rank(self, texts: Sequence[str], table: Table, contrast: Floats) -> Iterator[Ranking]:
        """One ranking for each row of the table; `contrast` is taken off each row's cosines."""
        if not self._keys:
            return (self._nothing(text) for text in texts)
        totals = total_scores(table, self._rules.lexical_share * self._calibration.scale)
        scores = np.maximum.reduceat(totals, self._starts, axis=1)
        kept = self._rules.neighbours_kept + 1
        order = np.argsort(-np.round(scores, DECIMALS), axis=1, kind="stable")[:, :kept]
        return (
            self._row(text, table.cosines[row], scores[row], (order[row], float(contrast[row])))
            for row, text in enumerate(texts)
        )

    def _row(
        self, text: str, cosines: Floats, scores: Floats, found: tuple[NDArray[np.intp], float]
    ) -> Ranking:
        order, contrast = found
        best = np.maximum.reduceat(cosines, self._starts)[order].astype(np.float64)
        scope_score = float(cosines.max()) - contrast
        # The winner's is p(right | contrastive score), whoever has the best cosine.
        similarities = self._calibration.similarity(np.array([scope_score, *(best[1:] - contrast)]))
        in_scope = scope_score >= self._calibration.floor and similarities[0] >= self._rules.similarity_floor
        capabilities = tuple(
            CapabilityScore(
                capability=self._keys[self._starts[group]].capability,
                agent_cosines=self._agents(int(group), cosines),
                cosine=float(best[place]),
                similarity=float(similarities[place]),
                score=float(scores[group]),
            )
            for place, group in enumerate(order.tolist())
        )
        return self._ranking(text, capabilities, (scope_score, contrast), in_scope=bool(in_scope))

    def _agents(self, group: int, cosines: Floats) -> dict[AgentId, float]:
        span = range(int(self._starts[group]), self._ends[group])
        values = cosines[span.start : span.stop].tolist()
        return {
            self._keys[at].agent_id: value
            for at, value in zip(span, values, strict=True)
            if value > NOT_SEARCHED
        }

    def _nothing(self, text: str) -> Ranking:
        return self._ranking(text, (), (0.0, 0.0), in_scope=False)

    def _ranking(
        self,
        text: str,
        capabilities: tuple[CapabilityScore, ...],
        scope: tuple[float, float],
        *,
        in_scope: bool,
    ) -> Ranking:
        return Ranking(
            text=text,
            capabilities=capabilities,
            scope_score=scope[0],
            scope_floor=self._calibration.floor,
            in_scope=in_scope,
            encoder_id=self._calibration.encoder_id,
            registry_version=self._version,
            calibration=self._calibration.kind,
            contrast=scope[1],
            scale=self._calibration.scale,
        )


def total_scores(table: Table, lexical_worth: float) -> Floats:
    """Cosine plus the lexical share: what the best lexical match of a text gets, others in proportion."""
    best = table.lexical.max(axis=1, keepdims=True)
    shares = table.lexical / np.maximum(best, np.finfo(np.float32).tiny)
    return np.asarray(table.cosines + lexical_worth * shares, dtype=np.float32)
