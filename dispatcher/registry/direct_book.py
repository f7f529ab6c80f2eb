"""The secret of direct calls and the database's time, as one replica knows them."""

import secrets
from dataclasses import dataclass, field
from typing import Protocol

from dispatcher.clock import Clock
from dispatcher.registry.direct import Moment, TicketRules

REREAD_S = 60.0
"""How long secret and time are used without asking the database again."""
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """The secret that all replicas share, and the database's time when it was read."""

    secret: bytes = field(repr=False)
    now_ms: int


class SecretRepository(Protocol):
    """Keeps one secret."""

    async def secret(self, fresh: bytes) -> StoredSecret:
        """The stored secret; `fresh` becomes it, durably, where there is none yet."""
        ...


class DirectBook:
    """Secret and database time in memory, read again every `REREAD_S` seconds when somebody asks."""

    def __init__(self, repository: SecretRepository, rules: TicketRules, clock: Clock) -> None:
        self._repository = repository
        self._rules = rules
        self._clock = clock
        self._stored: StoredSecret | None = None
        self._read_at = 0.0

    async def now(self) -> Moment:
        """Now, by the database's clock; raises UnavailableError where the database does not tell."""
        stored = self._stored
        if stored is None or self._clock.monotonic() - self._read_at > REREAD_S:
            stored = await self._repository.secret(secrets.token_bytes(_SECRET_BYTES))
            self._stored, self._read_at = stored, self._clock.monotonic()
        since_ms = int((self._clock.monotonic() - self._read_at) * 1000)
        return Moment(secret=stored.secret, now_ms=stored.now_ms + since_ms, rules=self._rules)
