"""Which JSON values every part can keep.

What PostgreSQL, SQLite or a reader with 64 bits would refuse or change is named here, so that
both edges (the gateway and the agents' frames) refuse it before anything else meets it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1
"""Integers beyond it lose digits in readers that use 64 bits."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Why a value can't be kept. `text` goes on after the value's name and never quotes the value."""

    code: str
    text: str


TOO_DEEP = Flaw(code="too_deep", text=f"is nested deeper than {MAX_DEPTH} levels")
UNUSABLE_TEXT = Flaw(code="unusable_text", text="holds NUL or half a surrogate pair")
BEYOND_64_BITS = Flaw(code="unusable_number", text="holds an integer beyond 64 bits")
NOT_FINITE = Flaw(code="unusable_number", text="holds a number that is not finite")


def find_flaw(value: object) -> Flaw | None:
    """The first flaw of a JSON value, names included; None when it can be kept.

    Walks level by level, so that depth is bounded however deep the value is. The value itself
    is level 1.
    """
    if not isinstance(value, dict | list):  # most calls, and the walk costs six times as much
        return _flaw_of_scalar(value)
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [inner for inner in level if isinstance(inner, dict | list)]
        scalars = (inner for inner in level if not isinstance(inner, dict | list))
        flaw = next(filter(None, map(_flaw_of_scalar, scalars)), None)
        if flaw or not containers:
            return flaw
        level = [inner for container in containers for inner in _inside(container)]
    return TOO_DEEP


def storable(value: ValueT) -> ValueT:
    """The value itself; raises ValueError, as a pydantic validator does, when it has a flaw."""
    if flaw := find_flaw(value):
        raise ValueError(flaw.text)
    return value


def _inside(container: dict[object, object] | list[object]) -> Iterator[object]:
    yield from container
    if isinstance(container, dict):
        yield from container.values()


def _flaw_of_scalar(value: object) -> Flaw | None:
    match value:
        case str() if "\x00" in value or not _is_unicode(value):
            return UNUSABLE_TEXT
        case int() if abs(value) > MAX_INTEGER:
            return BEYOND_64_BITS
        case float() if not math.isfinite(value):
            return NOT_FINITE
    return None


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair has no UTF-8 form."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
