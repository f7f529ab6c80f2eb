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
_AROUND = " \t\r\n.,!?;:()[]。，！？；：、（）【】\"'“”"


def named_option(message: str, options: Sequence[Capability]) -> int | None:
    """The place, from 0, of the option that the message names by its number from 1 or by its name.

    None where it says anything else, or a number that no option has.
    """
    said = unicodedata.normalize("NFKC", message).casefold().strip(_AROUND)
    for place, option in enumerate(options):
        if said == option.casefold():
            return place
    found = next(filter(None, (pattern.fullmatch(said) for pattern in _CHOICES)), None)
    if found is None:
        return None
    number = _WORDS.get(found["number"]) or int(found["number"])
    return number - 1 if number <= len(options) else None


def meant_option(message: str, near: Sequence[Capability], options: Sequence[Capability]) -> int | None:
    """The place, from 0, of the option that a short message clearly asks for.

    `near` are the capabilities that the message may mean: only one where it is clear, and none where it is
    out of scope. A longer message is a new wish, whatever it ranks to.
    """
    is_short = 0 < len(message.strip()) <= FREE_CHARACTERS
    if not is_short or len(near) != 1 or near[0] not in options:
        return None
    return options.index(near[0])
