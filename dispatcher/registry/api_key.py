"""API keys: `ard_<key id>_<secret>`, shown once; only the secret's SHA-256 is kept.

The secret has 256 random bits, so a fast hash is enough: there is nothing to guess.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from dispatcher.registry.access import ApiKey, Role

_FORM = re.compile(r"ard_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NO_SECRET = "0" * 64
"""Compared with where there is no such key, so that the answer takes as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentedKey:
    """A key as somebody sent it, taken apart."""

    key_id: str
    secret: str = field(repr=False)


def new_key(role: Role, subject: str) -> tuple[ApiKey, str]:
    """A fresh key to store, and the text to give to its holder; the text can't be had again."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    key = ApiKey(key_id=key_id, role=role, subject=subject, secret_sha256=_sha256(secret))
    return key, f"ard_{key_id}_{secret}"


def parse_key(text: str) -> PresentedKey | None:
    """The parts of a key's text; None for anything else."""
    found = _FORM.fullmatch(text)
    return PresentedKey(key_id=found[1], secret=found[2]) if found else None


def fits(presented: PresentedKey, stored: ApiKey | None) -> bool:
    """Whether the presented secret is the stored key's and not revoked; equally long for an unknown key."""
    expected = stored.secret_sha256 if stored else _NO_SECRET
    equal = hmac.compare_digest(_sha256(presented.secret), expected)
    return equal and stored is not None and not stored.revoked


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
