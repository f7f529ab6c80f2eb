"""Names for encoders whose model and preparation are settings."""

import hashlib
import re

import orjson

FINGERPRINT = 8
"""Hexadecimal digits: encoders of one dispatcher are few."""


def encoder_id_of(kind: str, model: str, prepared: tuple[object, ...]) -> str:
    """A name that can be a file's, and another one for everything `prepared` differently."""
    name = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[-48:].strip("-")
    return f"{kind}-{name}-{hashlib.sha256(orjson.dumps(prepared)).hexdigest()[:FINGERPRINT]}"
