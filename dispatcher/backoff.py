"""How long to wait between tries."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

_MOST_DOUBLINGS = 60
"""Longer than anybody waits, and far from a number that a float can't hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffRules:
    """Seconds between tries: from `first_s`, doubling, to `longest_s`."""

    first_s: float = 0.5
    longest_s: float = 10.0


def doubled(first_s: float, tried: int, longest_s: float = inf) -> float:
    """Seconds to wait after that many tries, at least one: `first_s`, doubling, up to `longest_s`."""
    return min(first_s * 2.0 ** min(tried - 1, _MOST_DOUBLINGS), longest_s)


def pauses(rules: BackoffRules, chance: random.Random) -> Iterator[float]:
    """One pause after another without end, each shortened at random to as little as half."""
    tried = 1
    while True:
        yield doubled(rules.first_s, tried, rules.longest_s) * chance.uniform(0.5, 1.0)
        tried += 1
