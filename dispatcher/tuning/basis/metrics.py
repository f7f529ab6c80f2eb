"""Figures with 95 % intervals, from plain values. Pure: chance is an argument."""

import math
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z95 = 1.959964
RESAMPLES = 1000
BINS = 10
"""Of the calibration error, of equal width on [0, 1]."""

UNIT = (0.0, 1.0)
"""What a share lies within."""
DIFFERENCE = (-1.0, 1.0)
"""What the difference of two shares lies within."""

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


def any_share(hits: int, of: int) -> Figure | None:
    """As `share`; None where `of` is 0."""
    return share(hits, of) if of else None


def values(figures: Iterable[Figure | None]) -> list[float]:
    """The values alone, NaN where there is no figure."""
    return [math.nan if one is None else one.value for one in figures]


def with_intervals(figures: Iterable[tuple[float, Figure | None]]) -> list[tuple[float, float, float, float]]:
    """Points (x, value, low, high) for a plot, without those that have no figure."""
    return [(at, one.value, one.low, one.high) for at, one in figures if one is not None]


def bootstrapped(
    statistic: Statistic,
    chance: np.random.Generator,
    *samples: ArrayLike,
    within: tuple[float, float] = UNIT,
) -> Figure:
    """The statistic of samples that were drawn independently, with a percentile interval.

    Each sample's first axis is its observations, at least one; each is drawn again with replacement
    RESAMPLES times. `within` is where the statistic can lie. Where every resample gives the same, which
    says nothing of what was not seen, the interval is that of `_unseen`: one-sided at an end of `within`.
    """
    value, found, counts = _resampled(statistic, chance, samples)
    low, high = np.quantile(found, [0.025, 0.975]).tolist()
    if found.min() == found.max():
        low, high = _unseen(value, min(counts), within)
    return Figure(value=value, low=low, high=high, of=sum(counts))


def calibration_figure(pairs: ArrayLike, chance: np.random.Generator) -> Figure:
    """`calibration_error` of at least one row, with an interval that its value lies in.

    Chance gaps add up whatever their sign, so the error of a sample lies above that of the population, and
    that of a resample above the sample's. The upper end is the percentile less the resamples' bias, the
    lower end the upper percentile reflected at the value (the basic bootstrap; Davison and Hinkley, 1997).
    Where the population has no error at all it reaches down to 0 in about half of all samples, plain
    percentiles in none; from an error of .05 and a thousand rows on it holds what it should.
    """
    value, found, (count,) = _resampled(calibration_error, chance, (pairs,))
    if found.min() == found.max():
        low, high = _unseen(value, count, UNIT)
    else:
        upper = float(np.quantile(found, 0.975))
        low, high = 2 * value - upper, upper - float(found.mean() - value)
    return Figure(value=value, low=max(min(low, value), 0.0), high=min(max(high, value), 1.0), of=count)


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


def _resampled(
    statistic: Statistic, chance: np.random.Generator, samples: Iterable[ArrayLike]
) -> tuple[float, Doubles, list[int]]:
    """The statistic, its values of RESAMPLES resamples, and the size of each sample."""
    taken = [np.asarray(sample) for sample in samples]
    found = [
        statistic(*(sample[chance.integers(len(sample), size=len(sample))] for sample in taken))
        for _ in range(RESAMPLES)
    ]
    return statistic(*taken), np.array(found), [len(sample) for sample in taken]


def _unseen(value: float, count: int, within: tuple[float, float]) -> tuple[float, float]:
    """Where the statistic may be when none of `count` observations differed.

    So many of `count` leave room for a share of others (Wilson's bound), which may lie at either end.
    """
    alike = share(count, count).low
    lowest, highest = within
    return lowest + alike * (value - lowest), highest - alike * (highest - value)
