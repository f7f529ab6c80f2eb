"""Callers and agents as holders of keys, and which capability a caller was granted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dispatcher.identifiers import CallerId, Capability


class Role(StrEnum):
    """What a key is for; one key has one role and a route names the roles it admits."""

    CALLER = "caller"
    AGENT = "agent"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key: only the SHA-256 of the secret is kept. `subject` is a caller or an agent id."""

    key_id: str
    role: Role
    subject: str
    secret_sha256: str
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who sends this request, after authentication.

    `grants` None means every capability (development, admin).
    """

    role: Role
    subject: str
    grants: frozenset[Capability] | None = frozenset()
    every_role: bool = False
    """True in development mode only: the one identity passes every role check."""

    @property
    def caller_id(self) -> CallerId:
        """The subject as the owner of requests, sessions and idempotency keys."""
        return CallerId(self.subject)

    def allows(self, capability: Capability) -> bool:
        """Whether a call to this capability is granted (I6); exact names only, no wildcard."""
        return self.grants is None or capability in self.grants


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSnapshot:
    """All keys, revoked ones included, and the grants of every caller that has any."""

    keys: tuple[ApiKey, ...]
    grants: Mapping[CallerId, frozenset[Capability]]


class AccessRepository(Protocol):
    """Keys and grants. All changes are durable when the call returns."""

    async def load(self) -> AccessSnapshot:
        """All keys, by creation, and all grants, consistent with one another."""
        ...

    async def add_key(self, key: ApiKey) -> None:
        """Store a new key."""
        ...

    async def keys(self) -> list[ApiKey]:
        """All keys, by creation."""
        ...

    async def revoke_key(self, key_id: str) -> bool:
        """Revoke for good; False where there is none."""
        ...

    async def grants(self, caller: CallerId) -> frozenset[Capability]:
        """The capabilities granted to a caller; empty for an unknown one."""
        ...

    async def set_grants(self, caller: CallerId, capabilities: frozenset[Capability]) -> None:
        """Replace the caller's grants by exactly these."""
        ...
