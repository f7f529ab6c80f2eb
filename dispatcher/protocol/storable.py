"""Which JSON values every part can keep.

What PostgreSQL, SQLite or a reader with 64 bits would refuse or change is named here, so that
both edges (the gateway and the agents' frames) refuse it before anything else meets it.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1
"""Integers beyond it lose digits in readers that use 64 bits."""

_CONTAINERS = (dict, list)
_Container = dict[str, object] | list[object]
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
    if not isinstance(value, _CONTAINERS):
        return _flaw_of_scalar(value)
    containers: list[_Container] = [value]
    for _ in range(MAX_DEPTH):
        level, containers = _inside(containers), []
        for inner in level:
            if isinstance(inner, _CONTAINERS):
                containers.append(inner)
            elif flaw := _flaw_of_scalar(inner):
                return flaw
        if not containers:
            return None
    return TOO_DEEP


def storable(value: ValueT) -> ValueT:
    """The value itself; raises ValueError, as a pydantic validator does, when it has a flaw."""
    if value and (flaw := find_flaw(value)):
        raise ValueError(flaw.text)
    return value


def storable_text(text: str) -> str:
    """As `storable`."""
    if flaw := _flaw_of_text(text):
        raise ValueError(flaw.text)
    return text


def _inside(containers: list[_Container]) -> list[object]:
    """Names and values of objects, and the items of arrays."""
    inside: list[object] = []
    for container in containers:
        if isinstance(container, dict):
            inside += container
            inside += container.values()
        else:
            inside += container
    return inside


def _flaw_of_scalar(value: object) -> Flaw | None:
    if isinstance(value, str):
        return _flaw_of_text(value)
    if isinstance(value, int):
        return BEYOND_64_BITS if abs(value) > MAX_INTEGER else None
    if isinstance(value, float):
        return None if math.isfinite(value) else NOT_FINITE
    return None


def _flaw_of_text(text: str) -> Flaw | None:
    """Half a surrogate pair has no UTF-8 form."""
    if "\x00" in text:
        return UNUSABLE_TEXT
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return UNUSABLE_TEXT
    return None
