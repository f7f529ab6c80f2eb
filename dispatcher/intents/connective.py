"""Words that join two wishes, and the words that look the same but do not.

Every cut at one of these is only proposed here; it is kept where both sides rank to different
capabilities (see `decompose`), so a generous list costs little.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectives:
    """Words of one kind and the reason why they are listed together.

    `not_after` and `not_before` name neighbours with which the word is part of another one.
    Chinese words match anywhere, English ones as whole words in any case.
    """

    words: Sequence[str]
    reason: str
    not_after: Sequence[str] = ()
    not_before: Sequence[str] = ()
    is_aside: bool = False
    """Says that something else follows, so that a wish out of scope behind it is one of its own."""


ENGLISH = (
    Connectives(
        words=("and then", "and after that", "and", "plus"),
        reason="join two clauses, but nouns as well: only ranking tells",
    ),
    Connectives(
        words=(
            "as well as",
            "along with",
            "in addition to that",
            "in addition",
            "additionally",
            "on top of that",
        ),
        reason="add a second thing; seldom inside a noun phrase",
    ),
    Connectives(
        words=("besides", "furthermore", "moreover", "by the way", "btw", "while you are at it", "oh and"),
        reason="a side wish follows",
        is_aside=True,
    ),
    Connectives(
        words=("also",),
        reason="a side wish follows, but also part of 'and also', 'but also'",
        is_aside=True,
    ),
    Connectives(
        words=("after that", "afterwards", "then", "finally"),
        reason="order in time: the next wish follows",
        not_after=("since ", "by ", "until ", "back "),
    ),
)

CHINESE = (
    Connectives(
        words=("除此之外", "另外", "此外", "顺便", "顺带", "对了", "话说"),
        reason="a side wish follows; hardly ever inside one",
        is_aside=True,
    ),
    Connectives(
        words=("并且", "而且", "以及", "同时", "与此同时"),
        reason="join clauses of equal rank",
        not_before=("具",),
    ),
    Connectives(
        words=("然后", "接着", "接下来", "随后", "最后"),
        reason="order in time: the next wish follows",
    ),
    Connectives(
        words=("还有", "还想", "还要", "还需要", "还得"),
        reason="one thing more; 还有 is also 'still have'",
        not_before=("没", "多少", "几", "多久", "吗", "货", "哪些", "其", "别"),
    ),
    Connectives(
        words=("再",),
        reason="'then', but also 'again' and part of many words",
        not_before=("见", "次", "说", "也", "不", "度", "三", "生"),
        not_after=("一", "不"),
    ),
    Connectives(
        words=("并",),
        reason="'and' between verbs; also 'at all' before a negation",
        not_before=("不", "没", "非", "未", "列", "发", "购"),
        not_after=("合", "一", "吞"),
    ),
)
