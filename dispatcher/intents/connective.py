"""Words that join two wishes, and the words that look the same but do not.

Every cut at one of these is only proposed here; it is kept where both sides rank to different
capabilities (see `decompose`), so a generous list costs little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class CutKind(IntEnum):
    """What separates a clause from the one before; the larger, the surer that a new wish begins."""

    LIST = 1
    """A list mark: 、 or a space between Chinese words, or 和."""
    CONNECTIVE = 2
    """A bare "and", which joins words and wishes alike."""
    COMMA = 3
    """Emoji and "~" as well, which many write in the place of any mark."""
    ADDITION = 4
    """A connective that adds something or says what comes next: plus, then, 然后."""
    JOINT = 5
    """A comma and a connective: ", and", "，还有"."""
    ASIDE = 6
    """A connective that announces something else: 另外, 顺便, by the way."""
    SENTENCE = 7


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
    kind: CutKind = CutKind.ADDITION
    """An ASIDE says that something else follows: a wish out of scope behind it is one of its own."""


ENGLISH = (
    Connectives(
        words=("and", "&"),
        reason="join two clauses, but nouns as well: only ranking tells",
        not_after=("go ahead ",),
        not_before=(" then", " after that"),
        kind=CutKind.CONNECTIVE,
    ),
    Connectives(
        words=(
            *("and then", "and after that", "plus"),
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
        words=(
            *("besides", "furthermore", "moreover", "by the way", "btw", "while you are at it", "oh and"),
            *("one more thing", "another thing", "on another note", "separately"),
        ),
        reason="a side wish follows",
        kind=CutKind.ASIDE,
    ),
    Connectives(
        words=("also",),
        reason="a side wish follows, but also part of 'and also', 'but also'",
        kind=CutKind.ASIDE,
    ),
    Connectives(
        words=("after that", "afterwards", "then", "finally", "lastly", "secondly"),
        reason="order in time: the next wish follows",
        not_after=("since ", "by ", "until ", "back "),
    ),
)

CHINESE = (
    Connectives(
        words=("除此之外", "另外", "此外", "顺便", "顺带", "顺道", "对了", "话说"),
        reason="a side wish follows; hardly ever inside one",
        kind=CutKind.ASIDE,
    ),
    Connectives(
        words=("并且", "而且", "以及", "同时", "与此同时"),
        reason="join clauses of equal rank",
        not_before=("具",),
        kind=CutKind.CONNECTIVE,
    ),
    Connectives(
        words=("然后", "接着", "接下来", "随后", "最后", "首先", "其次", "再有"),
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
        words=("和", "与", "及"),
        reason="'and' between nouns, and 'with'; part of many words",
        not_after=(
            "温",
            "平",
            "缓",
            "柔",
            "总",
            "共",
            "饱",
            "暖",
            "随",
            "参",
            "给",
            "赋",
            "赠",
            "以",
            "不",
            "未",
            "来不",
            "来得",
            "涉",
            "提",
            "普",
            "危",
            "顾",
            "波",
            "触",
        ),
        not_before=(
            "平",
            "谐",
            "气",
            "蔼",
            "解",
            "服",
            "好",
            "睦",
            "否",
            "会",
            "其",
            "时",
            "格",
            "早",
            "我",
            "你",
            "您",
            "他",
            "她",
        ),
        kind=CutKind.LIST,
    ),
    Connectives(
        words=("并",),
        reason="'and' between verbs; also 'at all' before a negation",
        kind=CutKind.CONNECTIVE,
        not_before=("不", "没", "非", "未", "列", "发", "购", "且"),
        not_after=("合", "一", "吞"),
    ),
)
