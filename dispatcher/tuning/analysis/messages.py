"""What became of messages of several wishes, and of whose fault it was. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from dispatcher.identifiers import Capability
from dispatcher.routing.embedder import Vectors
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.routed import Figures, message_figures, served


class Fate(StrEnum):
    """The first thing that went wrong with a message, in the order in which it is worked on."""

    EXACT = "exact"
    NOT_SPLIT = "not split"
    """Fewer intents than wishes."""
    SPLIT_TOO_FAR = "split too far"
    """More intents than wishes, of which more than the wished for got a task."""
    REFUSED = "a part refused"
    """A wish was found out of scope; all others have their task."""
    WRONG_AGENT = "a wrong capability"
    """What is left: some intent went to a capability that nobody wished for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One message: what each of its intents was given to, in order; None is out of scope."""

    row: RequestRow
    intents: tuple[Capability | None, ...]

    @property
    def found(self) -> frozenset[Capability]:
        """The capabilities that get a task."""
        return served(self.intents)

    @property
    def fate(self) -> Fate:
        """What became of it."""
        if self.found == self.row.wanted:
            return Fate.EXACT
        if len(self.intents) < len(self.row.wanted):
            return Fate.NOT_SPLIT
        if self.found > self.row.wanted:
            return Fate.SPLIT_TOO_FAR
        is_lost = None in self.intents and self.found < self.row.wanted
        return Fate.REFUSED if is_lost else Fate.WRONG_AGENT


def fates(heard: Iterable[Heard]) -> dict[int, Counter[Fate]]:
    """By how many wishes a message has."""
    found: dict[int, Counter[Fate]] = {}
    for one in sorted(heard, key=lambda one: len(one.row.wanted)):
        found.setdefault(len(one.row.wanted), Counter())[one.fate] += 1
    return found


def figures(heard: Sequence[Heard], chance: np.random.Generator) -> Figures:
    """`multi_exact` and `multi_f1`, as `dispatcher eval` has them."""
    return message_figures([one.row for one in heard], [one.found for one in heard], chance)


def split_counts(heard: Iterable[Heard], most: int) -> Vectors:
    """Messages by wishes (rows) and intents (columns), both from 1 to `most`, more counting as `most`."""
    table = np.zeros((most, most), dtype=np.float32)
    for one in heard:
        wishes = max(len(one.row.wanted), 1)
        table[min(wishes, most) - 1, min(len(one.intents), most) - 1] += 1
    return table


def lost_wishes(heard: Iterable[Heard]) -> Mapping[Capability, int]:
    """Which wishes got no task, most frequent first."""
    return dict(Counter(name for one in heard for name in sorted(one.row.wanted - one.found)).most_common())
