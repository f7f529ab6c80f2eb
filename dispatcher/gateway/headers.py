"""The few request headers that mean something here; pure. Values arrive as Latin-1 text."""

import re
from collections.abc import Mapping, Sequence

from dispatcher.errors import RequestError

MAX_KEY_LENGTH = 128
EVENTS = "text/event-stream"

_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_VISIBLE = re.compile(rf"[!-~]{{1,{MAX_KEY_LENGTH}}}")
_WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?", re.ASCII)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


def read_idempotency_key(values: Sequence[str]) -> str | None:
    """The key, bare or as a quoted string (RFC 8941 §3.3.3); both spellings are the same key.

    None when no key was sent. Raises RequestError when it is not 1 to MAX_KEY_LENGTH visible
    ASCII characters, or was sent twice.
    """
    if not values:
        return None
    key = values[0].strip()
    if key.startswith('"'):
        quoted = _QUOTED.fullmatch(key)
        key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    if len(values) > 1 or not _VISIBLE.fullmatch(key):
        raise RequestError(
            f"Idempotency-Key must be sent once and be 1 to {MAX_KEY_LENGTH} visible ASCII characters.",
            code="invalid_idempotency_key",
        )
    return key


def prefers_async(values: Sequence[str]) -> bool:
    """Whether `Prefer` (RFC 7240) asks for an answer before the work is done."""
    preferences = (item.split(";")[0].strip().lower() for value in values for item in value.split(","))
    return "respond-async" in preferences


def prefers_events(values: Sequence[str]) -> bool:
    """Whether `Accept` ranks `text/event-stream`, by its name, above `application/json`.

    At the same weight it does so only where JSON is not named itself (`text/event-stream, */*`).
    """
    if not any(EVENTS in value.lower() for value in values):
        return False
    ranges = _read_accept(values)
    events, json = ranges.get(EVENTS, 0.0), _quality(ranges, "application/json")
    return events > json or (0 < events == json and "application/json" not in ranges)


def admits_events(values: Sequence[str]) -> bool:
    """Whether `Accept` lets `text/event-stream` be sent; without that header it does."""
    return not values or _quality(_read_accept(values), EVENTS) > 0


def _quality(ranges: Mapping[str, float], media_type: str) -> float:
    """The weight of the most specific range that takes in the type (RFC 9110 §12.5.1); 0 for none."""
    kind = media_type.partition("/")[0]
    return next((ranges[name] for name in (media_type, f"{kind}/*", "*/*") if name in ranges), 0.0)


def _read_accept(values: Sequence[str]) -> Mapping[str, float]:
    """The ranges with their weights; a weight that can't be read counts as 0."""
    ranges: dict[str, float] = {}
    for item in ",".join(values).lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        weights = [text[2:] for text in parameters if text.startswith("q=")]
        quality = float(weights[0]) if weights and _WEIGHT.fullmatch(weights[0]) else float(not weights)
        ranges[name] = max(ranges.get(name, 0.0), quality)
    return ranges


def read_event_id(values: Sequence[str]) -> str | None:
    """`Last-Event-ID`; None when none, or an empty one, was sent (an EventSource's first request).

    Raises RequestError `invalid_event_id` for several.
    """
    if len(values) > 1:
        raise RequestError("Last-Event-ID must be sent once.", code="invalid_event_id")
    return values[0] if values and values[0] else None


def read_bearer(values: Sequence[str]) -> str:
    """The bearer key of `Authorization`; empty when there is not exactly one."""
    match = _BEARER.fullmatch(values[0].strip()) if len(values) == 1 else None
    return match[1] if match else ""
