"""Keys and grants in memory, so that authentication and grant checks never wait for the database."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from dispatcher.clock import Clock
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import CallerId, Capability
from dispatcher.protocol.frames import RegisterFrame
from dispatcher.registry.access import AccessRepository, AccessSnapshot, ApiKey, Identity, Role
from dispatcher.registry.api_key import PresentedKey, fits, parse_key

MAX_AGE_S = 30.0
"""A copy older than this could honour a revoked key; nobody is let in by it."""
NEW_KEY_S = 0.2
"""How old the copy has to be before a key that does not fit makes the book look again."""
_UNREADABLE = "keys and grants can't be read from the database"
DEVELOPMENT = Identity(role=Role.CALLER, subject="development", grants=None, every_role=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    keys: Mapping[str, ApiKey]
    grants: Mapping[CallerId, frozenset[Capability]]
    unlimited: frozenset[CallerId]
    read_at: float


class AccessBook:
    """Who a key belongs to and what its holder may call. `refresh` is to be called every second.

    In development mode every sender, with a key or without, is one identity that may do everything.
    """

    def __init__(self, repository: AccessRepository, clock: Clock, *, development: bool) -> None:
        self._repository = repository
        self._clock = clock
        self._development = development
        self._copy: _Copy | None = None
        self._began_at = -math.inf
        """When the latest load began, whatever became of it."""
        self._loading = asyncio.Lock()
        """One load after the other: one that began earlier never replaces what a later one found."""

    async def refresh(self) -> None:
        """Replace the copy by what is stored now; raises UnavailableError and keeps the old one."""
        if not self._development:
            async with self._loading:
                await self._load()

    async def authenticate(self, bearer: str | None) -> Identity | None:
        """The identity behind a key's text; None where it is not a valid key.

        A key that does not fit may be younger than the copy: the database is asked again, at most
        every NEW_KEY_S seconds, once for all who ask meanwhile, and never twice at a time.

        Raises:
            UnavailableError: The copy is missing or older than MAX_AGE_S, or the key does not fit it
                and the database could not be asked again.
        """
        if self._development:
            return DEVELOPMENT
        presented = parse_key(bearer or "")
        if presented is None:
            return None
        identity = self._identity(presented)
        if identity is None:
            await self._look_again()
            identity = self._identity(presented)
        return identity

    async def _look_again(self) -> None:
        asked_at = self._clock.monotonic()
        async with self._loading:
            began_at = self._began_at
            if began_at < asked_at and self._clock.monotonic() - began_at >= NEW_KEY_S:
                await self._load()
            elif self._current().read_at < began_at:
                raise UnavailableError(_UNREADABLE)

    async def _load(self) -> None:
        """To be called with the lock held."""
        self._began_at = self._clock.monotonic()
        self._copy = _copy(await self._repository.load(), self._began_at)

    def _identity(self, presented: PresentedKey) -> Identity | None:
        copy = self._current()
        key = copy.keys.get(presented.key_id)
        if not fits(presented, key) or key is None:
            return None
        return Identity(role=key.role, subject=key.subject, grants=_grants(copy, key))

    def grants(self, caller: CallerId) -> frozenset[Capability] | None:
        """What a caller may call now; None means every capability (development, admin).

        Raises:
            UnavailableError: The copy is missing or older than MAX_AGE_S.
        """
        if self._development:
            return None
        copy = self._current()
        return None if caller in copy.unlimited else copy.grants.get(caller, frozenset())

    async def may_register(self, frame: RegisterFrame) -> bool:
        """Whether the frame's key is one of the agent that it registers."""
        identity = await self.authenticate(frame.key)
        if identity is None:
            return False
        own = identity.role is Role.AGENT and identity.subject == frame.agent_id
        return own or identity.every_role

    def _current(self) -> _Copy:
        if self._copy is None or self._clock.monotonic() - self._copy.read_at > MAX_AGE_S:
            raise UnavailableError(_UNREADABLE)
        return self._copy


def _copy(snapshot: AccessSnapshot, read_at: float) -> _Copy:
    return _Copy(
        keys={key.key_id: key for key in snapshot.keys},
        grants=dict(snapshot.grants),
        unlimited=_holders(snapshot, Role.ADMIN) - _holders(snapshot, Role.CALLER),
        read_at=read_at,
    )


def _holders(snapshot: AccessSnapshot, role: Role) -> frozenset[CallerId]:
    # A caller that shares an admin's name must not inherit its rights.
    return frozenset(CallerId(k.subject) for k in snapshot.keys if k.role is role and not k.revoked)


def _grants(copy: _Copy, key: ApiKey) -> frozenset[Capability] | None:
    if key.role is Role.ADMIN:
        return None
    return copy.grants.get(CallerId(key.subject), frozenset()) if key.role is Role.CALLER else frozenset()
