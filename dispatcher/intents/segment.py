"""Decides which neighbouring clauses belong to one wish; pure, over the ranks of all spans.

A span is a pair of clause indexes, `[first, beyond)`. Four steps, each a function below:

1. Cut. Sentence ends stay cut. Commas and connectives stay cut where both sides rank to
   different capabilities, the weaker one reaches `weaker_share` and their mean `mean_share` of
   the uncut text. Where only one side is in scope, the cut stays if the other side asks for
   something and the uncut text falls below `context_share` of the good side: then it is a wish
   of its own, not context. Of two sides that stand by themselves less is wanted, and nothing
   where a connective joins them (`_is_apart`).
2. Join. Neighbours of one capability are one wish; so is a weak piece with its strong neighbour
   where joining keeps the neighbour's capability and score ("我搬家了。更新一下地址"), unless
   they are apart.
3. Drop filler: what doesn't ask and is out of scope or under `filler_share` of the median score.
   The best piece always stays; an out-of-scope wish stays, so that it is reported as such.
4. At most `MAX_INTENTS`: what is beyond stays in the last piece.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from dispatcher.intents.clause import CutKind
from dispatcher.intents.plan import MAX_INTENTS, SpanRank

Span = tuple[int, int]

_UNSURE = frozenset({CutKind.LIST, CutKind.COMMA})


@dataclass(frozen=True, slots=True, kw_only=True)
class DecomposeRules:
    """Shares of scores, all in [0, 1]; defaults measured on a Chinese and an English set.

    The `standing_` shares are for two sides that stand by themselves. A span is ranked by its
    first `ranked_characters`: more cost time and blur the vector.
    """

    weaker_share: float = 0.7
    mean_share: float = 0.9
    standing_mean_share: float = 0.85
    context_share: float = 0.85
    standing_context_share: float = 0.95
    filler_share: float = 0.65
    ranked_characters: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTable:
    """All that is known of n clauses: the cut before each, what each does, n·(n+1)/2 ranks.

    `asking` clauses read like a wish, `standing` ones are one without their neighbours' help.
    """

    cuts: Sequence[CutKind]
    asking: Sequence[bool]
    standing: Sequence[bool]
    ranks: Mapping[Span, SpanRank]

    def asks(self, span: Span) -> bool:
        """Whether any clause of the span reads like a wish."""
        return any(self.asking[span[0] : span[1]])

    def stands(self, span: Span) -> bool:
        """Whether any clause of the span is a wish by itself."""
        return any(self.standing[span[0] : span[1]])


def all_spans(count: int) -> tuple[Span, ...]:
    """Every contiguous span of `count` clauses."""
    return tuple((first, beyond) for first in range(count) for beyond in range(first + 1, count + 1))


def choose_spans(table: SpanTable, rules: DecomposeRules) -> tuple[Span, ...]:
    """The spans that are one wish each: at least one, at most MAX_INTENTS, in order, disjoint."""
    cut = _cut((0, len(table.cuts)), table, rules)
    joined = _join_same(_join_context(_join_same(cut, table), table, rules), table)
    return _limit(_join_same(_drop_filler(joined, table, rules), table))


def _cut(whole: Span, table: SpanTable, rules: DecomposeRules) -> list[Span]:
    kept = [at for at in range(whole[0] + 1, whole[1]) if _stays_cut(whole, at, table, rules)]
    if not kept:
        return [whole]
    at = max(kept, key=lambda at: _strength(whole, at, table))
    return _cut((whole[0], at), table, rules) + _cut((at, whole[1]), table, rules)


def _strength(whole: Span, at: int, table: SpanTable) -> tuple[bool, float]:
    left, right = table.ranks[whole[0], at], table.ranks[at, whole[1]]
    return table.cuts[at] is CutKind.SENTENCE, min(left.score, right.score)


def _stays_cut(whole: Span, at: int, table: SpanTable, rules: DecomposeRules) -> bool:
    if table.cuts[at] is CutKind.SENTENCE:
        return True
    spans = (whole[0], at), (at, whole[1])
    left, right = (table.ranks[span] for span in spans)
    if left.in_scope == right.in_scope:
        return _both_hold(whole, at, table, rules) or (left.in_scope and _is_apart(*spans, table))
    good, other = spans if left.in_scope else spans[::-1]
    share = rules.standing_context_share if _both_stand(*spans, table) else rules.context_share
    is_hidden = table.ranks[whole].score >= share * table.ranks[good].score
    return table.asks(other) and (not is_hidden or _is_apart(*spans, table))


def _both_hold(whole: Span, at: int, table: SpanTable, rules: DecomposeRules) -> bool:
    spans = (whole[0], at), (at, whole[1])
    left, right, uncut = table.ranks[spans[0]], table.ranks[spans[1]], table.ranks[whole]
    share = rules.standing_mean_share if _both_stand(*spans, table) else rules.mean_share
    return (
        left.capability != right.capability
        and min(left.score, right.score) >= rules.weaker_share * uncut.score
        and (left.score + right.score) / 2 >= share * uncut.score
    )


def _both_stand(left: Span, right: Span, table: SpanTable) -> bool:
    """Two capabilities, each asked for by itself."""
    differ = table.ranks[left].capability != table.ranks[right].capability
    return differ and table.stands(left) and table.stands(right)


def _join_same(spans: Sequence[Span], table: SpanTable) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and _is_same(joined[-1], span, table):
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    return joined


def _is_same(left: Span, right: Span, table: SpanTable) -> bool:
    """One capability, and neither is a wish that is out of scope beside one that is in it."""
    ranks = table.ranks[left], table.ranks[right]
    if ranks[0].capability != ranks[1].capability:
        return False
    outside = [span for span, rank in zip((left, right), ranks, strict=True) if not rank.in_scope]
    return len(outside) != 1 or not table.asks(outside[0])


def _join_context(spans: Sequence[Span], table: SpanTable, rules: DecomposeRules) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        following = span
        while joined and _is_context(joined[-1], following, table, rules):
            following = (joined.pop()[0], following[1])
        joined.append(following)
    return joined


def _is_context(left: Span, right: Span, table: SpanTable, rules: DecomposeRules) -> bool:
    strong, weak = (left, right) if table.ranks[left].score >= table.ranks[right].score else (right, left)
    if _is_apart(left, right, table):
        return False
    remark = not table.ranks[weak].in_scope and not table.asks(weak)
    share = rules.context_share if remark else 1.0
    uncut = table.ranks[left[0], right[1]]
    return (
        uncut.capability == table.ranks[strong].capability
        and uncut.score >= share * table.ranks[strong].score
    )


def _is_apart(left: Span, right: Span, table: SpanTable) -> bool:
    """Whether two spans are two wishes however well they rank as one.

    So are two that stand by themselves, of two capabilities or with one out of scope. The one
    out of scope alone is enough behind an aside if it asks, behind a connective if it stands.
    Behind a mere comma nothing is.
    """
    cut = table.cuts[right[0]]
    outside = [span for span in (left, right) if not table.ranks[span].in_scope]
    differ = table.ranks[left].capability != table.ranks[right].capability
    if cut in _UNSURE or not (outside or differ):
        return False
    if table.stands(left) and table.stands(right):
        return True
    if cut is CutKind.ASIDE:
        return bool(outside) and all(map(table.asks, outside))
    return cut is not CutKind.SENTENCE and outside == [right] and table.stands(right)


def _drop_filler(spans: Sequence[Span], table: SpanTable, rules: DecomposeRules) -> list[Span]:
    scores = [table.ranks[span].score for span in spans]
    best, least = max(scores), rules.filler_share * median(scores)
    return [
        span
        for span, score in zip(spans, scores, strict=True)
        if score == best or table.asks(span) or (table.ranks[span].in_scope and score >= least)
    ]


def _limit(spans: Sequence[Span]) -> tuple[Span, ...]:
    if len(spans) <= MAX_INTENTS:
        return tuple(spans)
    return (*spans[: MAX_INTENTS - 1], (spans[MAX_INTENTS - 1][0], spans[-1][1]))
