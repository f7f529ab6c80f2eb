"""How long to wait between tries."""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffRules:
    """Seconds between tries: from `first_s`, doubling, to `longest_s`."""

    first_s: float = 0.5
    longest_s: float = 10.0


def pauses(rules: BackoffRules, chance: random.Random) -> Iterator[float]:
    """One pause after another without end, each shortened at random to as little as half."""
    longest = rules.first_s
    while True:
        yield longest * chance.uniform(0.5, 1.0)
        longest = min(longest * 2, rules.longest_s)
