"""Finds what a piece refers to, so that its agent knows what "it" is (pure)."""

from collections.abc import Sequence

from dispatcher.intents.filler import is_standing
from dispatcher.intents.plan import Entity, EntityKind, Piece
from dispatcher.intents.reference import is_item, is_leaning, refers
from dispatcher.records import replace

MAX_PIECES = 3
"""Pieces that an antecedent reaches back."""
MAX_CHARACTERS = 300
"""Of a longer antecedent the end is taken."""


def with_antecedents(message: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces; those that need the ones before them know which stretch of the message that is.

    It begins with the last piece that stands by itself, and ends where the piece begins.
    """
    return tuple(
        replace(piece, antecedent=_antecedent(message, pieces[max(0, at - MAX_PIECES) : at]))
        if at and _needs_one(piece.text)
        else piece
        for at, piece in enumerate(pieces)
    )


def _needs_one(text: str) -> bool:
    return is_leaning(text) or is_item(text) or refers(text)


def _antecedent(message: str, before: Sequence[Piece]) -> Entity:
    standing = [piece for piece in before if is_standing(piece.text, message[piece.end : piece.end + 1])]
    first, last = standing[-1] if standing else before[0], before[-1]
    start = max(first.start, last.end - MAX_CHARACTERS)
    text = message[start : last.end]
    return Entity(kind=EntityKind.ANTECEDENT, text=text, value=text, start=start, end=last.end)
