"""The few request headers that mean something here; pure. Values arrive as Latin-1 text."""

import re
from collections.abc import Sequence

from dispatcher.errors import RequestError

MAX_KEY_LENGTH = 128

_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_VISIBLE = re.compile(rf"[!-~]{{1,{MAX_KEY_LENGTH}}}")
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


def read_bearer(values: Sequence[str]) -> str:
    """The bearer key of `Authorization`; empty when there is not exactly one."""
    match = _BEARER.fullmatch(values[0].strip()) if len(values) == 1 else None
    return match[1] if match else ""
