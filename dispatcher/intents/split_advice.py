"""Asking a language model how to split a message, and what of its reply counts (pure).

The reply only moves the cuts: pieces are located by verbatim quotes, and what the rules kept of the
message and no quote holds goes with the piece after it. So no reply can add a word, drop one ("don't
cancel" → "cancel") or drop a wish, whatever the message told the model.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dispatcher.errors import UnavailableError
from dispatcher.identifiers import Capability
from dispatcher.intents.language_model import DATA_ONLY, Offer, Prompt, closed_object, one_of
from dispatcher.intents.plan import MAX_INTENTS, Piece

_SYSTEM = f"""You split a chat message into the separate things that its author asks for.
`message` is what the author wrote, `capabilities` are things that can be done.
Reply {{"pieces": [{{"quote": ..., "capability": ...}}]}}: one piece for each thing asked for, in the order of
the message, at least one, at most {MAX_INTENTS}.
`quote` copies a stretch of `message` character for character. Quotes do not overlap; each is as long as it
can be. A remark belongs to the wish that it explains. What asks for one thing stays one piece.
`capability` is the name of the one in `capabilities` that this piece asks for, in view of the whole message;
null if none of them fits.
{DATA_ONLY}"""
_LETTERS = r"[^\W\u3400-\u9fff]+"
_WORD = re.compile(rf"{_LETTERS}(?:(?:['’@/-]+|(?<=\d)[.,:](?=\d)){_LETTERS})*")
"""What must stay whole: "don't", "A-12", "12.50"; Han characters are words by themselves."""
_MARKS = " \t\r\n,.;:!?，。、；：！？…"


class _Quoted(NamedTuple):
    start: int
    end: int
    capability: Capability | None


def split_prompt(message: str, offers: tuple[Offer, ...]) -> Prompt:
    """The question for one message."""
    piece = closed_object({"quote": {"type": "string"}, "capability": one_of(offers)})
    return Prompt(
        name="pieces",
        system=_SYSTEM,
        data={"message": message, "capabilities": [offer.to_json() for offer in offers]},
        schema=closed_object({"pieces": {"type": "array", "items": piece}}),
    )


def read_pieces(
    reply: object, message: str, ruled: Sequence[Piece], offered: Sequence[Capability]
) -> tuple[Piece, ...]:
    """The pieces of a reply; `ruled` are those of the rules, which say what of the message is filler.

    Raises UnavailableError where anything of the reply can't be used; nothing of it counts then.
    """
    quoted = _located(_rows(reply, offered), message)
    if not all(any(_touch(one, piece) for one in quoted) for piece in ruled):
        raise _refused("leaves a wish out")
    if not all(any(_touch(one, piece) for piece in ruled) for one in quoted):
        raise _refused("takes filler for a wish")
    spans = _widened(quoted, message, ruled)
    moved = [(start, end) for start, end in spans] != [(piece.start, piece.end) for piece in ruled]
    return tuple(
        Piece(text=message[start:end], start=start, end=end, advised=moved, suggested=one.capability)
        for (start, end), one in zip(spans, quoted, strict=True)
    )


def _rows(reply: object, offered: Sequence[Capability]) -> list[tuple[str, Capability | None]]:
    pieces = reply.get("pieces") if isinstance(reply, dict) and len(reply) == 1 else None
    if not isinstance(pieces, list) or not pieces:
        raise _refused("has not the form that was asked for")
    if len(pieces) > MAX_INTENTS:
        raise _refused("has too many pieces")
    known = {str(name): name for name in offered}
    return [_row(one, known) for one in pieces]


def _row(piece: object, known: Mapping[str, Capability]) -> tuple[str, Capability | None]:
    if not isinstance(piece, dict) or piece.keys() != {"quote", "capability"}:
        raise _refused("has not the form that was asked for")
    quote, name = piece["quote"], piece["capability"]
    if not isinstance(quote, str) or not any(character.isalnum() for character in quote):
        raise _refused("has a piece without a text")
    if name is None:
        return quote.strip(), None
    if not isinstance(name, str) or name not in known:
        raise _refused("names a capability that was not offered")
    return quote.strip(), known[name]


def _located(rows: Sequence[tuple[str, Capability | None]], message: str) -> list[_Quoted]:
    """Each quote at its first place behind the one before."""
    words = [found.span() for found in _WORD.finditer(message)]
    found: list[_Quoted] = []
    for quote, capability in rows:
        start = message.find(quote, found[-1].end if found else 0)
        if start < 0:
            raise _refused("quotes what does not stand there, or not in that order")
        end = start + len(quote)
        if _cuts_a_word(words, start) or _cuts_a_word(words, end):
            raise _refused("cuts a word")
        found.append(_Quoted(start, end, capability))
    return found


def _cuts_a_word(words: Sequence[tuple[int, int]], at: int) -> bool:
    return any(start < at < end for start, end in words)


def _touch(one: _Quoted, piece: Piece) -> bool:
    return one.start < piece.end and piece.start < one.end


def _widened(quoted: Sequence[_Quoted], message: str, ruled: Sequence[Piece]) -> list[tuple[int, int]]:
    """The quotes with what the rules kept before each, and behind the last."""
    ends = [0, *(one.end for one in quoted[:-1]), max(quoted[-1].end, ruled[-1].end)]
    return [
        (_first_kept(before, one.start, message, ruled), end)
        for one, (before, end) in zip(quoted, pairwise(ends), strict=True)
    ]


def _first_kept(low: int, high: int, message: str, ruled: Sequence[Piece]) -> int:
    """The first place from `low` to `high` that the rules did not drop and that is no mark."""
    kept = [max(piece.start, low) for piece in ruled if piece.end > low and piece.start < high]
    start = min(kept, default=high)
    return start + len(message[start:high]) - len(message[start:high].lstrip(_MARKS))


def _refused(what: str) -> UnavailableError:
    return UnavailableError(f"the language model's reply {what}")
