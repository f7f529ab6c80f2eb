"""Which of several options a message means that answers "which one?" (pure)."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from dispatcher.identifiers import Capability
from dispatcher.intents.follow_up import FREE_CHARACTERS

_WORDS: Mapping[str, int] = {
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "one": 1,
    "two": 2,
    "three": 3,
    "first": 1,
    "second": 2,
    "third": 3,
}
_CHOICES = tuple(
    map(
        re.compile,
        (
            # Behind a bare number a measure word counts: "两个" and "the two" mean both, "一个" any of them.
            r"(?:我要|我?选|选项)*第(?P<number>[1-9一二两三])[个项号种]?吧?",
            r"(?:我要|我?选|选项|#)*(?P<number>[1-9一二三])号?吧?",
            r"(?P<number>两)",
            # "no one" is none of them.
            r"(?:(?:the )?(?:option |number |no\. ?|no ?(?=[1-9])|#))*(?P<number>[1-9]|one|two|three)",
            r"(?:the |option |number )*(?P<number>first|second|third)(?: one| option)?",
            r"(?:the )?(?P<number>[1-9])(?:st|nd|rd)(?: one| option)?",
        ),
    )
)
_REPLIES = tuple(
    map(
        re.compile,
        (
            # Any number: no option may have it.
            r"(?:我要|我?选|选项|第|#)*[0-9零一二两三四五六七八九十]{1,2}[个项号种]?吧?",
            r"(?:the |option |number |no\. ?|no ?(?=\d)|#)*\d{1,2}(?:st|nd|rd|th)?(?: one| options?)?",
            r"(?:the |no |option |number )*(?:one|two|three|four|five)(?: one| options?)?",
            r"(?:the |option |number )*(?:first|second|third|fourth|fifth|last)(?: one| option)?",
            # Some, all or none of them.
            r"(?:one|two)(?: or | and )(?:two|three)|[1-9] ?(?:or|and|和|或者?|&|\+|,|、) ?[1-9]",
            r"(?:either|neither|both|none|all|any)(?: one)?(?: of (?:them|these|those|the (?:two|three)))?",
            r"(?:all |any |the )+(?:two|three)(?: of them)?|(?:the )?others?|no",
            r"(?:[这那][两三些]个?|[一两二三][个项种]|哪个|全)?[全都也]+不?(?:要|选|是|行|可以|没有)的?",
            r"全部|随便|没有|不[要选是行]?",
        ),
    )
)
"""What answers "which one?" and yet may name none of them."""
_AROUND = " \t\r\n.,!?;:()[]。，！？；：、（）【】\"'“”"


def named_option(message: str, options: Sequence[Capability]) -> int | None:
    """The place, from 0, of the option that the message names by its number from 1 or by its name.

    None where it says anything else, or a number that no option has.
    """
    said = _said(message)
    for place, option in enumerate(options):
        if said == option.casefold():
            return place
    found = next(filter(None, (pattern.fullmatch(said) for pattern in _CHOICES)), None)
    if found is None:
        return None
    number = _WORDS.get(found["number"]) or int(found["number"])
    return number - 1 if number <= len(options) else None


def is_choice(message: str, options: Sequence[Capability]) -> bool:
    """Reads like an answer to "which one?", though perhaps for none of these: "neither", "both", "4"."""
    if named_option(message, options) is not None:
        return True
    said = _said(message)
    return any(pattern.fullmatch(said) for pattern in _REPLIES)


def meant_option(message: str, near: Sequence[Capability], options: Sequence[Capability]) -> int | None:
    """The place, from 0, of the option that a short message clearly asks for.

    `near` are the capabilities that the message may mean: only one where it is clear, and none where it is
    out of scope. A longer message is a new wish, whatever it ranks to.
    """
    is_short = 0 < len(message.strip()) <= FREE_CHARACTERS
    if not is_short or len(near) != 1 or near[0] not in options:
        return None
    return options.index(near[0])


def _said(message: str) -> str:
    return unicodedata.normalize("NFKC", message).casefold().strip(_AROUND)
