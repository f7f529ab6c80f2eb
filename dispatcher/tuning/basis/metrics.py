"""Figures with 95 % intervals, from plain values. Pure: chance is an argument."""

import math
from collections.abc import Callable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z95 = 1.959964
RESAMPLES = 1000
BINS = 10
"""Of the calibration error, of equal width on [0, 1]."""

Doubles = NDArray[np.float64]
Statistic = Callable[..., float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value with its 95 % interval, and how many observations it is of."""

    value: float
    low: float
    high: float
    of: int


def share(hits: int, of: int) -> Figure:
    """`hits / of` with Wilson's score interval (Wilson, 1927); `of` is at least 1."""
    value = hits / of
    widened = 1 + Z95**2 / of
    middle = (value + Z95**2 / (2 * of)) / widened
    reach = Z95 / widened * math.sqrt(value * (1 - value) / of + Z95**2 / (4 * of**2))
    return Figure(value=value, low=max(middle - reach, 0.0), high=min(middle + reach, 1.0), of=of)


def bootstrapped(statistic: Statistic, chance: np.random.Generator, *samples: ArrayLike) -> Figure:
    """The statistic of samples that were drawn independently, with a percentile interval.

    Each sample's first axis is its observations, at least one; each is drawn again with replacement
    RESAMPLES times.
    """
    taken = [np.asarray(sample) for sample in samples]
    values = [
        statistic(*(sample[chance.integers(len(sample), size=len(sample))] for sample in taken))
        for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return Figure(value=statistic(*taken), low=low, high=high, of=sum(len(sample) for sample in taken))


def mean(values: ArrayLike) -> float:
    """The arithmetic mean."""
    return float(np.asarray(values, dtype=np.float64).mean())


def auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """How likely one of `inside` scores above one of `outside`; a tie counts half (Mann and Whitney)."""
    upper, lower = np.asarray(inside, dtype=np.float64), np.sort(np.asarray(outside, dtype=np.float64))
    below, upto = np.searchsorted(lower, upper, "left"), np.searchsorted(lower, upper, "right")
    return float((below + upto).sum() / (2 * len(upper) * len(lower)))


def calibration_error(pairs: ArrayLike) -> float:
    """Expected calibration error of rows (probability, 1 where it came true and 0 where not), in [0, 1].

    In each of BINS bins the distance of mean probability and frequency, weighed by the bin's rows.
    """
    table = np.asarray(pairs, dtype=np.float64)
    place = np.minimum((table[:, 0] * BINS).astype(np.intp), BINS - 1)
    gaps = np.bincount(place, weights=table[:, 0] - table[:, 1], minlength=BINS)
    return float(np.abs(gaps).sum() / len(table))


def quantile(values: ArrayLike, at: float) -> float:
    """The value below which the share `at` lies, interpolated."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), at))


def f1(found: Set[str], wanted: Set[str]) -> float:
    """The harmonic mean of precision and recall, in [0, 1]; 1 where nothing was wanted and nothing found."""
    if not found and not wanted:
        return 1.0
    return 2 * len(found & wanted) / (len(found) + len(wanted))
