"""Whom a decision looks at, and what of them follows from ranking, calibration and declarations alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import NamedTuple

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.registry.agent import Agent
from dispatcher.routing.curve import Doubles
from dispatcher.routing.index import NOT_SEARCHED
from dispatcher.routing.ranking import CapabilityScore, Ranking
from dispatcher.routing.rules import RoutingRules
from dispatcher.routing.slots import Key

_DECIMALS = 6
"""As many as `index.STEPS` leaves; what differs beyond is arithmetic."""

Similarity = Callable[[Doubles], Doubles]
"""Contrastive scores to calibrated similarities."""

Groups = Callable[[Capability], Sequence[Agent]]
"""The agents of a capability; see `registry.live.AgentDirectory.group`."""

_Answers = Mapping[Capability, Sequence[Agent]]

Fit = tuple[Agent, Capability, float]
"""An agent, one of its capabilities, and the cosine of the text with it."""


class Line(NamedTuple):
    """An agent's declaration of a capability and how well the text fits it."""

    key: Key
    agent: Agent
    cosine: float
    similarity: float


_Lines = tuple[Sequence[Line], Sequence[Line]]
"""Of those who compete, and of the nearest others."""


class Wish(NamedTuple):
    """What is to be decided: a capability, and the similarity it has where no ranking knows better."""

    capability: Capability
    similarity: float
    ranking: Ranking | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortlist:
    """Those who compete for a wish, and the nearest agents of other capabilities, best first.

    `similarity` is that of the wished capability; `is_declared` tells whether any agent has it.
    `groups` are the answers of the directory that it was made from.
    """

    wish: Wish
    similarity: float
    is_declared: bool
    group: Sequence[Line]
    neighbours: Sequence[Line]
    groups: Mapping[Capability, Sequence[Agent]]

    def holds(self, wish: Wish, groups: Groups) -> bool:
        """Whether it is what would be made for this wish now."""
        return self.wish == wish and all(map(is_, map(groups, self.groups), self.groups.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortlister:
    """Makes shortlists; the same wish and the same groups always give the same one."""

    groups: Groups
    similarity: Similarity
    rules: RoutingRules

    def make(self, wish: Wish) -> Shortlist:
        """The shortlist of one wish."""
        entries = wish.ranking.capabilities if wish.ranking else ()
        groups = {name: self.groups(name) for name in (wish.capability, *(one.capability for one in entries))}
        own = next((one for one in entries if one.capability == wish.capability), None)
        if wish.ranking is None or own is None:
            group, neighbours = self._beside(wish, groups)
        else:
            group, neighbours = self._ranked(own, wish.ranking, groups)
        return Shortlist(
            wish=wish,
            similarity=own.similarity if own else wish.similarity,
            is_declared=len(groups[wish.capability]) > 0,
            group=group,
            neighbours=neighbours,
            groups=groups,
        )

    def _ranked(self, own: CapabilityScore, ranking: Ranking, groups: _Answers) -> _Lines:
        admitted = [own, *self._near(own, ranking)]
        competing = {one.capability for one in admitted}
        group = _group(admitted, ranking, groups)
        nearest = self._nearest(
            (one for one in ranking.capabilities if one.capability not in competing), groups
        )
        lines = self._lines((*group, *nearest), ranking, (own.capability, _raise(own, ranking)))
        return lines[: len(group)], lines[len(group) :]

    def _beside(self, wish: Wish, groups: _Answers) -> _Lines:
        """Where the wished capability is not ranked."""
        group = _unranked(wish, groups[wish.capability])
        if wish.ranking is None:
            return group, ()
        others = (one for one in wish.ranking.capabilities if one.capability != wish.capability)
        return group, self._lines(self._nearest(others, groups), wish.ranking)

    def _near(self, own: CapabilityScore, ranking: Ranking) -> Iterable[CapabilityScore]:
        """The capabilities within the margin of the wished one."""
        margin = self.rules.margin * ranking.scale
        near = (
            one for one in ranking.capabilities if one is not own and 0 <= own.score - one.score <= margin
        )
        return near if margin > 0 else ()

    def _nearest(self, entries: Iterable[CapabilityScore], groups: _Answers) -> Sequence[Fit]:
        """Who of these capabilities fits best, at most `neighbours_kept`; only who is still registered."""
        found = [
            (-cosine, agent.agent_id, entry.capability, agent)
            for entry in entries
            for agent in groups[entry.capability]
            if (cosine := entry.agent_cosines.get(agent.agent_id, NOT_SEARCHED)) > NOT_SEARCHED
        ]
        found.sort(key=itemgetter(0, 1, 2))
        return [(agent, name, -away) for away, _, name, agent in found[: self.rules.neighbours_kept]]

    def _lines(
        self, fits: Sequence[Fit], ranking: Ranking, raised: tuple[Capability | None, float] = (None, 0.0)
    ) -> Sequence[Line]:
        """All of them in one call of the curve, which costs as much for one score as for fifty.

        The contrastive scores of one capability are raised by so much.
        """
        if not fits:
            return ()
        higher, by = raised
        scores = np.array(
            [cosine + by if name == higher else cosine for _, name, cosine in fits], dtype=np.float64
        )
        scores -= ranking.contrast
        return tuple(
            Line(Key(name, agent.agent_id), agent, cosine, value)
            for (agent, name, cosine), value in zip(fits, self.similarity(scores).tolist(), strict=True)
        )


def _group(admitted: Iterable[CapabilityScore], ranking: Ranking, groups: _Answers) -> Sequence[Fit]:
    """The agents of ranked capabilities; one that registered since has its group's best cosine.

    One beyond the search can't fit better than any that was searched, and has the lowest of theirs.
    """
    found = [
        (agent, entry.capability, entry.agent_cosines.get(agent.agent_id, entry.cosine))
        for entry in admitted
        for agent in groups[entry.capability]
    ]
    if all(cosine > NOT_SEARCHED for _, _, cosine in found):
        return found
    lowest = _lowest(ranking)
    return [(agent, name, max(lowest, cosine)) for agent, name, cosine in found]


def _lowest(ranking: Ranking) -> float:
    found = (cosine for entry in ranking.capabilities for cosine in entry.agent_cosines.values())
    return min((cosine for cosine in found if cosine > NOT_SEARCHED), default=NOT_SEARCHED)


def _raise(own: CapabilityScore, ranking: Ranking) -> float:
    """What the ranking's own winner lacks of the text's scope score, which another capability may have.

    The text was accepted by that score and the winner's similarity is its: the winner's agents are looked
    at on the same scale, else the best of them could fall short of the floor that the text passed. What a
    language model chose instead has the similarity of its own cosine.
    """
    best = max(one.score for one in ranking.capabilities)
    is_best = round(best - own.score, _DECIMALS) <= 0
    lacking = ranking.scope_score - (own.cosine - ranking.contrast)
    return round(lacking, _DECIMALS) if is_best else 0.0


def _unranked(wish: Wish, agents: Iterable[Agent]) -> Sequence[Line]:
    """A capability's agents where the text was not ranked for it: the wish's similarity, cosine 0."""
    return tuple(Line(Key(wish.capability, agent.agent_id), agent, 0.0, wish.similarity) for agent in agents)
