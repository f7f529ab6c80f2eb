"""Reference rows: what the calibration statistic looks like in public registries, shipped per encoder.

Scores are kept as heights, so that they fit registries of other languages and lengths of text:
0 is the registry's mean background score, 1 the median score of its left-out examples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import orjson

from dispatcher.routing.curve import Doubles, Rows

LOW = -1.5
WIDTH = 0.05
BINS = 80
"""Heights from -1.5 to 2.5; what lies beyond is counted in the outermost bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSize:
    """Shares by height for registries of one size: `right` + `wrong` sum to 1, `outside` sums to 1."""

    right: Doubles
    wrong: Doubles
    outside: Doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The reference rows of one encoder by number of capabilities."""

    encoder_id: str
    sizes: Mapping[int, ReferenceSize]

    def nearest(self, capabilities: int) -> ReferenceSize:
        """The size that is nearest by ratio, the smaller of two."""
        return self.sizes[min(sorted(self.sizes), key=lambda size: abs(np.log2(size / max(capabilities, 1))))]


def load_reference(encoder_id: str) -> Reference | None:
    """The shipped rows; None for an encoder that has none."""
    file = files("dispatcher.routing").joinpath("reference", f"{encoder_id}.json")
    return parse_reference(orjson.loads(file.read_bytes())) if file.is_file() else None


def parse_reference(document: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> Reference:
    """Read the document that `dispatcher.tuning.fitting.reference_rows` writes."""
    sizes = {
        int(size): ReferenceSize(**{name: np.asarray(table[name]) for name in ("right", "wrong", "outside")})
        for size, table in document["sizes"].items()
    }
    return Reference(encoder_id=str(document["encoder"]), sizes=sizes)


def histogram(heights: Doubles, weights: Doubles) -> Doubles:
    """The weight in each bin."""
    at = np.clip(np.floor((heights - LOW) / WIDTH), 0, BINS - 1).astype(np.intp)
    return np.bincount(at, weights=weights, minlength=BINS).astype(np.float64)


def inside_rows(size: ReferenceSize, weight: float) -> Rows:
    """In-scope rows at bin centres, on the scale of heights, weighing `weight` together."""
    return Rows(
        score=np.concatenate([_centres(), _centres()]),
        right=np.concatenate([np.ones(BINS, dtype=np.bool_), np.zeros(BINS, dtype=np.bool_)]),
        weight=weight * np.concatenate([size.right, size.wrong]),
    )


def outside_rows(size: ReferenceSize, weight: float) -> Rows:
    """Out-of-scope rows, the same way."""
    return Rows(score=_centres(), right=np.zeros(BINS, dtype=np.bool_), weight=weight * size.outside)


def _centres() -> Doubles:
    return LOW + WIDTH * (np.arange(BINS, dtype=np.float64) + 0.5)
