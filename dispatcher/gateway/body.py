"""Which request bodies are JSON that every part behind the gateway can keep.

Pure and stricter than RFC 8259: what SQLite and PostgreSQL, or two JSON readers, would treat
differently is refused here, so that no later part meets it. Messages never quote the body.
"""

import hashlib
import json
import math
from collections.abc import Iterator

from dispatcher.errors import RequestError

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1
"""Integers beyond it lose digits in readers that use 64 bits."""


def check_media_type(content_type: str | None, content_encoding: str | None) -> None:
    """Admit `application/json` in UTF-8, not compressed; raises RequestError otherwise."""
    media_type, *parameters = (content_type or "").lower().split(";")
    if media_type.strip() != "application/json":
        raise RequestError("Content-Type must be application/json.", code="unsupported_media_type")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8"}:
            raise RequestError("The charset must be UTF-8.", code="unsupported_media_type")
    if (content_encoding or "identity").strip().lower() != "identity":
        raise RequestError("The body must not be compressed.", code="unsupported_media_type")


def parse_document(raw: bytes) -> dict[str, object]:
    """The JSON object that `raw` holds.

    Raises RequestError for anything that is not one JSON object in UTF-8 without a byte order
    mark, and for what can't be kept: NUL, lone surrogates, numbers that are not finite or beyond
    64 bits, a name given twice, more than MAX_DEPTH levels.
    """
    try:
        document = _DECODER.decode(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise RequestError("The body is not JSON in UTF-8.", code="malformed_json") from None
    if not isinstance(document, dict):
        raise RequestError("The body must be a JSON object.", code="malformed_json")
    _check_values(document)
    return document


def digest_document(document: dict[str, object]) -> str:
    """SHA-256 of the canonical form: equal documents have equal digests, whatever their spelling."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _check_values(document: object) -> None:
    """Walk level by level, so that depth is bounded before the next level is looked at."""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _inner_values(value)]
        if not level:
            return
    if any(isinstance(value, dict | list) for value in level):
        raise RequestError(f"The body is nested deeper than {MAX_DEPTH} levels.", code="too_deep")
    for value in level:
        _check_scalar(value)


def _inner_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    else:
        _check_scalar(value)


def _check_scalar(value: object) -> None:
    if isinstance(value, str) and ("\x00" in value or not _is_unicode(value)):
        raise RequestError("The body holds NUL or half a surrogate pair.", code="unusable_text")


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair has no UTF-8 form."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_integer(digits: str) -> int:
    if len(digits) > 20 or abs(number := int(digits)) > MAX_INTEGER:
        raise RequestError("The body holds an integer beyond 64 bits.", code="unusable_number")
    return number


def _read_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise RequestError("The body holds a number that is not finite.", code="unusable_number")
    return number


def _read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise RequestError("The body gives a name of one object twice.", code="duplicate_name")
    return document


_DECODER = json.JSONDecoder(
    parse_int=_read_integer,
    parse_float=_read_float,
    parse_constant=_read_float,
    object_pairs_hook=_read_object,
)
