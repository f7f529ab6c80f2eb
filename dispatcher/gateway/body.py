"""Which request bodies are JSON that every part behind the gateway can keep.

Pure and stricter than RFC 8259: what SQLite and PostgreSQL, or two JSON readers, would treat
differently is refused here, so that no later part meets it. Messages never quote the body.
"""

import hashlib
import json
import math

import orjson

from dispatcher.errors import RequestError
from dispatcher.protocol.storable import (
    BEYOND_64_BITS,
    MAX_DEPTH,
    MAX_INTEGER,
    NOT_FINITE,
    Flaw,
    find_flaw,
)


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
    64 bits, a name given twice, more than `protocol.storable.MAX_DEPTH` levels.
    """
    try:
        document = _DECODER.decode(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise RequestError("The body is not JSON in UTF-8.", code="malformed_json") from None
    if not isinstance(document, dict):
        raise RequestError("The body must be a JSON object.", code="malformed_json")
    if _may_be_flawed(raw) and (flaw := find_flaw(document)):
        raise _refusal(flaw)
    return document


def digest_document(document: dict[str, object]) -> str:
    """SHA-256 of the canonical form: equal documents have equal digests, whatever their spelling."""
    return hashlib.sha256(_canonical(document)).hexdigest()


def _canonical(document: dict[str, object]) -> bytes:
    """What the standard library writes, for stored digests; orjson differs from it in floats alone."""
    if _holds_float(document):
        return _ENCODER.encode(document).encode()
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _holds_float(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_float, value.values()))
    if isinstance(value, list):
        return any(map(_holds_float, value))
    return isinstance(value, float)


def _may_be_flawed(raw: bytes) -> bool:
    """Whether valid JSON may hold what its numbers, which were looked at when they were read, do not.

    NUL and half a surrogate pair come as escapes alone, and no level without a bracket. One byte is found
    much sooner than two.
    """
    has_escape = b"\\" in raw and b"\\u" in raw
    return has_escape or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH


def _refusal(flaw: Flaw) -> RequestError:
    return RequestError(f"The body {flaw.text}.", code=flaw.code)


def _read_integer(digits: str) -> int:
    if len(digits) > 20 or abs(number := int(digits)) > MAX_INTEGER:
        raise _refusal(BEYOND_64_BITS)
    return number


def _read_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _refusal(NOT_FINITE)
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
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
