"""Decides which neighbouring clauses belong to one wish; pure, over the ranks of all spans.

A span is a pair of clause indexes, `[first, beyond)`. Four steps, each a function below:

1. Cut. Sentence ends stay cut. Commas and connectives stay cut where both sides rank to
   different capabilities, the weaker one reaches `weaker_share` and their mean `mean_share` of
   the uncut text. Where only one side is in scope, the cut stays if the other side asks for
   something and the uncut text falls below `context_share` of the good side: then it is a wish
   of its own, not context. Of two sides that stand by themselves less is wanted, and nothing
   where a connective joins them (`_is_apart`). The things of a list ("订单和快递", "refund and
   invoice") are cut only where both are likely wishes (`_are_items`).
2. Join. Neighbours of one capability are one wish; so is a weak piece with its strong neighbour
   where joining keeps the neighbour's capability and score ("我搬家了。更新一下地址"), unless
   they are apart; so is one that leans on the piece before and ranks badly without it ("It is
   broken. How long does it take?").
3. Drop filler: what doesn't ask and is out of scope or under `filler_share` of the median score.
   The best piece always stays; an out-of-scope wish stays, so that it is reported as such.
4. At most `MAX_INTENTS`: what is beyond stays in the last piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dispatcher.intents.connective import CutKind
from dispatcher.intents.plan import MAX_INTENTS
from dispatcher.intents.span_table import Span, SpanTable

_UNSURE = frozenset({CutKind.LIST, CutKind.COMMA})


@dataclass(frozen=True, slots=True, kw_only=True)
class DecomposeRules:
    """Shares of scores and calibrated similarities, all in [0, 1]; measured on Chinese and English sets.

    The `standing_` shares are for two sides that stand by themselves. A clause that leans on the one
    before stays alone from `leaning_similarity` on, one behind a bare "and" from `likely_similarity`
    on. Things of a list need `item_similarity` each, and from `sure_similarity` on no look at the
    uncut text. A piece is ranked by `ranked_characters` of its text at most: 10,000 cost the encoder
    a second, and more than some 200 tell it no more.
    """

    weaker_share: float = 0.7
    mean_share: float = 0.9
    standing_mean_share: float = 0.85
    context_share: float = 0.85
    standing_context_share: float = 0.95
    filler_share: float = 0.65
    leaning_similarity: float = 0.6
    likely_similarity: float = 0.5
    item_similarity: float = 0.7
    sure_similarity: float = 0.9
    ranked_characters: int = 240


def choose_spans(table: SpanTable, rules: DecomposeRules) -> tuple[Span, ...]:
    """The spans that are one wish each: at least one, at most MAX_INTENTS, in order, disjoint."""
    cut = _cut((0, len(table.cuts)), table, rules)
    joined = _join_same(_join_context(_join_same(cut, table), table, rules), table)
    joined = _join_same(_join_leaning(joined, table, rules), table)
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
    if table.is_list(spans[1]):
        return _are_items(whole, at, table, rules)
    if left.in_scope == right.in_scope:
        if left.in_scope and _is_more_of_the_same(whole, at, table, rules):
            return False
        return _both_hold(whole, at, table, rules) or (left.in_scope and _is_apart(*spans, table))
    good, other = spans if left.in_scope else spans[::-1]
    share = rules.standing_context_share if _both_stand(*spans, table) else rules.context_share
    is_hidden = table.ranks[whole].score >= share * table.ranks[good].score
    return table.asks(other) and (not is_hidden or _is_apart(*spans, table))


def _is_more_of_the_same(whole: Span, at: int, table: SpanTable, rules: DecomposeRules) -> bool:
    """Behind a bare "and", something that nobody is likely to be meant for beside the wish before it."""
    left, right = table.ranks[whole[0], at], table.ranks[at, whole[1]]
    return (
        table.cuts[at] is CutKind.CONNECTIVE
        and right.similarity < rules.likely_similarity <= left.similarity
        and table.ranks[whole].capability == left.capability
    )


def _are_items(whole: Span, at: int, table: SpanTable, rules: DecomposeRules) -> bool:
    """Two things of a list that two capabilities are asked for."""
    spans = (whole[0], at), (at, whole[1])
    if not _are_likely(*spans, table, rules):
        return False
    is_sure = min(table.ranks[span].similarity for span in spans) >= rules.sure_similarity
    return is_sure or _both_hold(whole, at, table, rules)


def _are_likely(left: Span, right: Span, table: SpanTable, rules: DecomposeRules) -> bool:
    ranks = table.ranks[left], table.ranks[right]
    differ = ranks[0].capability != ranks[1].capability
    return differ and all(rank.in_scope and rank.similarity >= rules.item_similarity for rank in ranks)


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


def _join_leaning(spans: Sequence[Span], table: SpanTable, rules: DecomposeRules) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and _is_weak_leaning(span, table, rules):
            joined[-1] = (joined[-1][0], span[1])
        else:
            joined.append(span)
    return joined


def _is_weak_leaning(span: Span, table: SpanTable, rules: DecomposeRules) -> bool:
    """Leans on what is before it, and ranks badly because of that."""
    rank = table.ranks[span]
    is_weak = not rank.in_scope or rank.similarity < rules.leaning_similarity
    return is_weak and table.leaning[span[0]] and table.cuts[span[0]] is not CutKind.ASIDE


def _is_context(left: Span, right: Span, table: SpanTable, rules: DecomposeRules) -> bool:
    strong, weak = (left, right) if table.ranks[left].score >= table.ranks[right].score else (right, left)
    if _is_apart(left, right, table) or (table.is_list(right) and _are_likely(left, right, table, rules)):
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
