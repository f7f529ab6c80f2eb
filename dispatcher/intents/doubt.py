"""When the rules are unsure of a message: what a language model may then be asked about (pure)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from dispatcher.identifiers import Capability
from dispatcher.intents.plan import Piece
from dispatcher.intents.reference import is_leaning, plain


class Doubt(StrEnum):
    """Why the rules are unsure."""

    FUSED = "fused"
    """One piece that seems to ask for two things."""
    POINTING = "pointing"
    """A piece that means little without what was said before it."""
    LOW_MARGIN = "low_margin"
    """Another capability fits nearly as well as the best one."""
    NEAR_FLOOR = "near_floor"
    """Out of scope by little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtRules:
    """What counts as unsure.

    `margin` is in units of the median lead, as `routing.rules.RoutingRules.margin`: how little the best
    capability may lead, and how little a text may lie below the scope floor. A text of
    `fused_bytes` of UTF-8 whose two best capabilities reach `fused_similarity` seems to want both. Of
    the nearest capabilities `offers` may be named for one text. Messages of more than `longest`
    characters are left to the rules.
    """

    margin: float = 0.1
    fused_similarity: float = 0.7
    fused_bytes: int = 45
    offers: int = 5
    longest: int = 2_000


class Near(NamedTuple):
    """A capability that a text is near to; `behind` is how far its score lies behind the best one's."""

    capability: Capability
    similarity: float
    behind: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a text ranks: its nearest capabilities, best first.

    `below` is how far it lies below the scope floor; `unit` is what a margin of 1 is worth in the scores
    of `below` and `Near.behind`.
    """

    near: tuple[Near, ...]
    in_scope: bool
    below: float
    unit: float


_HAN = "\u3400-\u9fff"
_ASKS = re.compile(
    "(?P<question>什么时候|什么|多少|多久|多长|怎么|怎样|如何|为什么|哪里|哪儿|哪个|哪|几点|几天)"
    "|能不能|可不可以|能否|是否|有没有|是不是|帮我|给我|我要|我想"
    r"|\b(?:what|where|when|why|how|which|who|can you|could you|can i|could i|is there|are there"
    r"|tell me|show me|give me|help me|i want|i need|i'd like|i would like|please)\b"
)
"""What a wish begins or asks with; `question` are Chinese words that rarely stand twice in one question."""
_ASKED_WITHIN = re.compile(rf"吗(?=[{_HAN}]{{2}})")
"""A question that ends in the middle of a clause."""
_APART_BYTES = 9
"""Between two askings, in UTF-8: three Han characters, two short words. Less is one ("我想请你帮我")."""
_QUESTIONS_APART_BYTES = 3


def split_doubt(pieces: Sequence[Piece], standings: Sequence[Standing], rules: DoubtRules) -> Doubt | None:
    """Why the rules may have split wrongly; None where they are sure."""
    if any(is_fused(piece.text, one, rules) for piece, one in zip(pieces, standings, strict=True)):
        return Doubt.FUSED
    if any(is_leaning(piece.text) for piece in pieces[1:]):
        return Doubt.POINTING
    return None


def is_fused(text: str, standing: Standing, rules: DoubtRules) -> bool:
    """Asks twice, or is long and near to two capabilities at once."""
    if asks_twice(text):
        return True
    is_long = len(text.encode("utf-8", "replace")) >= rules.fused_bytes
    two = standing.near[:2]
    return is_long and len(two) == 2 and all(one.similarity >= rules.fused_similarity for one in two)


def asks_twice(text: str) -> bool:
    """Holds two asking words with something between them: "查下订单到哪了怎么退货"."""
    words = plain(text)
    if _ASKED_WITHIN.search(words):
        return True
    return any(_are_apart(words, one, two) for one, two in pairwise(_ASKS.finditer(words)))


def _are_apart(words: str, one: re.Match[str], two: re.Match[str]) -> bool:
    gap = words[one.end() : two.start()].encode("utf-8", "replace")
    return len(gap) >= (_QUESTIONS_APART_BYTES if one["question"] and two["question"] else _APART_BYTES)


def choice_doubt(standing: Standing, rules: DoubtRules) -> Doubt | None:
    """Why the best capability may be the wrong one; None where the rules are sure."""
    reach = rules.margin * standing.unit
    if not standing.in_scope:
        return Doubt.NEAR_FLOOR if standing.near and standing.below <= reach else None
    is_close = len(standing.near) > 1 and standing.near[1].behind <= reach
    return Doubt.LOW_MARGIN if is_close else None


def within_reach(standing: Standing, rules: DoubtRules) -> tuple[Capability, ...]:
    """The capabilities that the margin does not tell from the best one, which comes first."""
    reach = rules.margin * standing.unit
    return tuple(one.capability for one in standing.near[: rules.offers] if one.behind <= reach)
