"""What is known of a message's clauses and of all their spans before one is chosen; pure.

A span is a pair of clause indexes, `[first, beyond)`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dispatcher.intents.connective import CutKind
from dispatcher.intents.plan import SpanRank

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTable:
    """All that is known of n clauses: the cut before each, what each does, n·(n+1)/2 ranks.

    `asking` clauses read like a wish, `standing` ones are one without their neighbours' help;
    `leaning` ones mean little without the one before.
    """

    cuts: Sequence[CutKind]
    asking: Sequence[bool]
    standing: Sequence[bool]
    leaning: Sequence[bool]
    items: Sequence[bool]
    ranks: Mapping[Span, SpanRank]

    def asks(self, span: Span) -> bool:
        """Whether any clause of the span reads like a wish."""
        return any(self.asking[span[0] : span[1]])

    def is_list(self, span: Span) -> bool:
        """Whether the span continues a list of things rather than of wishes."""
        first, cut = span[0], self.cuts[span[0]]
        return cut is CutKind.LIST or (
            cut is CutKind.CONNECTIVE and self.items[first] and span[1] - first == 1
        )

    def stands(self, span: Span) -> bool:
        """Whether any clause of the span is a wish by itself."""
        return any(self.standing[span[0] : span[1]])


def all_spans(count: int) -> tuple[Span, ...]:
    """Every contiguous span of `count` clauses."""
    return tuple((first, beyond) for first in range(count) for beyond in range(first + 1, count + 1))
