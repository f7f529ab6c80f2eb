"""Cuts a message into clauses at punctuation and at connectives; pure and linear in its length.

Clauses are stretches of the original text, in order. What lies between two of them holds no
letter or digit except a connective's own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dispatcher.intents.connective import CHINESE, ENGLISH, Connectives, CutKind
from dispatcher.traditional import simplified

MAX_CLAUSES = 9
"""Nine clauses have 45 contiguous spans, which one encoder batch ranks in about 20 ms."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """`text[start:end]` and the kind of the cut before it (SENTENCE for the first)."""

    start: int
    end: int
    cut: CutKind


def _word_pattern(group: Connectives, *, whole: bool) -> str:
    words = "|".join(re.escape(word) for word in sorted(group.words, key=len, reverse=True))
    before = "".join(rf"(?<!{re.escape(word)})" for word in group.not_after)
    after = "".join(rf"(?!{re.escape(word)})" for word in group.not_before)
    edges = (r"(?<![A-Za-z0-9'’_-])", r"(?![A-Za-z0-9'’_-])") if whole else ("", "")
    return f"{edges[0]}{before}(?:{words}){edges[1]}{after}"


def _words(kind: CutKind) -> str:
    return "|".join(
        _word_pattern(group, whole=groups is ENGLISH)
        for groups in (ENGLISH, CHINESE)
        for group in groups
        if group.kind is kind
    )


_WHOLE = (
    r"(?:https?://|www\.)[!-~]{0,2000}[A-Za-z0-9/=&_~#%+-]"
    r"|(?<![A-Za-z0-9._+-])[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"
    r"|(?<!\d)\d++(?:[.,:]\d++)+|\d{1,3}(?:，\d{3})+(?!\d)|(?<!\d)\d++\s?[~～]\s?\d+"
    rf"|(?<![A-Za-z])(?:between|both)\s[^,.;!?，。；！？\n{_HAN}]{{1,60}}?\sand(?![A-Za-z])|(?<=[A-Za-z]);(?=[A-Za-z])"
    r"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|《[^》\n]{1,100}》|\"[^\"\n]{1,200}\"|（[^）\n]{1,200}）|\([^)\n]{1,200}\)"
    r"|(?<![A-Za-z])(?:mr|mrs|ms|dr|prof|vs|approx|e\.g|i\.e|a\.m|p\.m|inc|ltd)\."
    r"|(?<![A-Za-z])(?:no|nr|tel|ext)\.(?=\s?\d)"
    r"|(?<![A-Za-z])(?:[A-Za-z]\.){2,8}"
)
"""Runs of digits are taken whole and from their beginning: the time stays linear in their length."""
_SENTENCE = (
    r"[。｡．！？；!?;\n\r…]|\.(?=\s|$|[" + _HAN + r"])|(?-i:(?<=[a-z]{2})\.(?=[A-Z][a-z]*[\s']))"
    r"|(?:^|(?<=[\n，。；！？：,;!?:])|(?<=[，。；！？：,;!?:"
    + _HAN
    + r"]\s))\d{1,2}(?:[、．)）]|\.(?=\s|["
    + _HAN
    + r"]))(?!\d)"
)
"""Full stops in every width, one that was written without a space behind it, and numbers of a list."""
_COMPARED = "[^，。！？,?!]{0,12}(?:哪|区别|不同|差别|比较|相比|一样|叠加|之间|同时)"
"""What follows two things that are set against each other: no list."""
_EMOJI = "[\U0001f300-\U0001faff\u2600-\u27bf]\ufe0f?"
_COMMA = rf"[，,]|——|[~～]|(?<=\s)[–—](?=\s)|{_EMOJI}"
_LIST = rf"[、､]|(?<=[{_HAN}])[ \u3000]+(?=[{_HAN}])|(?:{_words(CutKind.LIST)})(?!{_COMPARED})"
_SCAN = re.compile(
    f"(?P<whole>{_WHOLE})|(?P<sentence>{_SENTENCE})|(?P<comma>{_COMMA})"
    f"|(?P<list>{_LIST})|(?P<aside>{_words(CutKind.ASIDE)})|(?P<addition>{_words(CutKind.ADDITION)})"
    f"|(?P<connective>{_words(CutKind.CONNECTIVE)})",
    re.IGNORECASE,
)
_KINDS = {
    "sentence": CutKind.SENTENCE,
    "comma": CutKind.COMMA,
    "list": CutKind.LIST,
    "aside": CutKind.ASIDE,
    "addition": CutKind.ADDITION,
    "connective": CutKind.CONNECTIVE,
}
_JOINING = frozenset({CutKind.CONNECTIVE, CutKind.ADDITION})


def cut_clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of `text`, at least one; a text without letters and digits is one clause."""
    return tuple(_cut(text)) or (Clause(start=0, end=len(text), cut=CutKind.SENTENCE),)


def keep_strongest(clauses: Sequence[Clause], limit: int = MAX_CLAUSES) -> tuple[Clause, ...]:
    """At most `limit` clauses: beyond, only the strongest cuts stay and neighbours stay together.

    What is stronger says `CutKind`; of equal ones the cut whose shorter neighbour is longer (a
    three-character clause is hardly a wish), then the earlier.
    """
    if len(clauses) <= limit:
        return tuple(clauses)
    strongest = sorted(range(1, len(clauses)), key=lambda at: _weakness(clauses, at))[: limit - 1]
    starts = [0, *sorted(strongest)]
    ends = [*starts[1:], len(clauses)]
    return tuple(_joined(clauses[start:end]) for start, end in zip(starts, ends, strict=True))


def _weakness(clauses: Sequence[Clause], at: int) -> tuple[int, int, int]:
    left, right = clauses[at - 1], clauses[at]
    return -right.cut, -min(left.end - left.start, right.end - right.start), at


def _joined(clauses: Sequence[Clause]) -> Clause:
    return Clause(start=clauses[0].start, end=clauses[-1].end, cut=clauses[0].cut)


def _cut(text: str) -> Iterator[Clause]:
    start, kind = 0, CutKind.SENTENCE
    for stop, resume, cut in _cuts(text):
        clause = _clause(text, start, stop, kind)
        if clause is None:
            is_joint = kind is CutKind.COMMA and cut in _JOINING
            kind = CutKind.JOINT if is_joint else max(kind, cut)
        else:
            yield clause
            kind = cut
        start = resume


def _cuts(text: str) -> Iterator[tuple[int, int, CutKind]]:
    for found in _SCAN.finditer(simplified(text)):
        kind = _KINDS.get(found.lastgroup or "")
        if kind is not None:
            yield found.start(), found.end(), kind
    yield len(text), len(text), CutKind.SENTENCE


def _clause(text: str, start: int, end: int, cut: CutKind) -> Clause | None:
    """None where the stretch holds nothing that could be said aloud."""
    stretch = text[start:end]
    if not any(character.isalnum() for character in stretch):
        return None
    left = start + len(stretch) - len(stretch.lstrip())
    return Clause(start=left, end=left + len(stretch.strip()), cut=cut)
