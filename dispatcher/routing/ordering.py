"""In which order capabilities answer a text: the cosine under the registry's metric plus a lexical share.

A text's capabilities are searched by plain cosine and lexical share, and the best `SHORTLIST` of them
put in order by the metric, each by its best agent.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.routing.embedder import Vectors
from dispatcher.routing.leave_one_out import LeftOut, Registered
from dispatcher.routing.metric import IDENTITY, Metric, fit_metric
from dispatcher.routing.prototype import unit

SHORTLIST = 32
"""Capabilities that get their place by the metric; 16 of 150 to 199 gave the same winners (measured)."""
BEHIND = np.float32(4.0)
"""Taken off the scores of all others: more than a score can be."""
SCALE_ROWS = 1024
"""Examples, or background utterances, that the scale is the median of; of more, evenly chosen ones."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalShares:
    """What the best lexical match adds, in units of the scale, with examples everywhere or nowhere."""

    with_examples: float
    without: float

    def between(self, part: float) -> float:
        """The share where `part` of the capabilities, in [0, 1], gave examples."""
        return self.without + (self.with_examples - self.without) * part


class Layout(NamedTuple):
    """Where the keys of each capability begin among all, how many it has, and whether each has one only."""

    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]
    is_single: bool


def layout_of(starts: NDArray[np.intp], keys: int) -> Layout:
    """The layout of so many keys."""
    return Layout(starts, np.diff(starts, append=keys), len(starts) == keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """Fitted to one state of the registry. `prototypes` are rows in key order, of length 1 under the metric.

    `scale` is the median lead of the best capability over the mean of all, in cosine under the metric;
    `worth` what the best lexical match of a text adds to its score.
    """

    metric: Metric
    prototypes: Vectors
    scale: float
    worth: float

    def shares(self, lexical: Floats) -> Floats:
        """What a text's lexical scores add: `worth` for the best match, others in proportion; 0 without."""
        best = float(np.maximum.reduce(lexical))
        return lexical * np.float32(self.worth / best) if best > 0 else lexical

    def scores(self, turned: Vectors, cosines: Floats, shares: Floats, layout: Layout) -> Floats:
        """Each capability's score for one text, given as the metric turns it.

        `cosines` and `shares`, what its words add, are of each key.
        """
        totals = cosines + shares
        found = totals if layout.is_single else np.maximum.reduceat(totals, layout.starts)
        if self.metric.matrix is None:
            return np.asarray(found)
        chosen = _best(found)
        places = chosen if layout.is_single else _first_best(totals, found, layout)[chosen]
        scores = found - BEHIND
        scores[chosen] = self.prototypes.take(places, axis=0).dot(turned) + shares[places]
        return np.asarray(scores)


def fit_ordering(
    registry: Registered, left_out: LeftOut | None, background: Vectors, shares: LexicalShares
) -> Ordering:
    """The ordering of a registry; the scale comes from left-out examples, or the background without any."""
    metric = fit_metric(registry)
    prototypes = unit(registry.totals)
    scale = _scale(registry, left_out, background, metric)
    with_examples = 0 if left_out is None else left_out.owners
    part = with_examples / max(len(registry.capabilities), 1)
    return Ordering(
        metric=metric,
        prototypes=np.asarray(prototypes * metric.reach(prototypes)[:, None]),
        scale=scale,
        worth=shares.between(part) * scale,
    )


def empty_ordering(dimensions: int) -> Ordering:
    """That of a registry without agents."""
    nothing = np.zeros((0, dimensions), dtype=np.float32)
    return Ordering(metric=IDENTITY, prototypes=nothing, scale=0.0, worth=0.0)


def _first_best(totals: Floats, best: Floats, layout: Layout) -> NDArray[np.intp]:
    """The place of each capability's best key, of equal ones the first."""
    those = np.flatnonzero(totals == np.repeat(best, layout.sizes))
    return those[np.searchsorted(those, layout.starts)]


def _best(scores: Floats) -> NDArray[np.intp]:
    beyond = len(scores) - SHORTLIST
    if beyond <= 0:
        return np.arange(len(scores))
    return scores.argpartition(beyond)[beyond:]


def _scale(registry: Registered, left_out: LeftOut | None, background: Vectors, metric: Metric) -> float:
    if not registry.prototypes:
        return 0.0
    reach = metric.reach(registry.totals)
    if left_out is None:
        fits = (metric.turned(background) @ registry.totals.T) * reach
        return _lead(fits, registry.starts)
    chosen = _evenly(len(left_out.vectors))
    turned = metric.turned(left_out.vectors[chosen])
    fits = (turned @ registry.totals.T) * reach
    place = np.full(len(left_out.vectors), -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    at, holder = _kept(left_out.holders, place)
    without = registry.totals[holder] - left_out.vectors[chosen][at]
    fits[at, holder] = np.einsum("ij,ij->i", turned[at], without) * metric.reach(without)
    return _lead(fits, registry.starts)


def _kept(
    holders: tuple[NDArray[np.intp], NDArray[np.intp]], place: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of example and holder, as far as the example was chosen, by its place among the chosen."""
    at, holder = holders
    kept = place[at] >= 0
    return place[at][kept], holder[kept]


def _evenly(count: int) -> NDArray[np.intp]:
    return np.linspace(0, count - 1, min(count, SCALE_ROWS)).astype(np.intp)


def _lead(fits: Floats, starts: NDArray[np.intp]) -> float:
    """Over capabilities, each as good as its best agent: how many agents one has changes nothing."""
    best = np.maximum.reduceat(fits, starts, axis=1)
    return float(np.median(best.max(axis=1) - best.mean(axis=1)))
