"""An instance's place in the registry: joining, staying, leaving."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from dispatcher.backoff import BackoffRules, doubled
from dispatcher.clock import Clock
from dispatcher.errors import DispatcherError, RegistrationError
from dispatcher.identifiers import InstanceId, LeaseId
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.frames import (
    AcknowledgedFrame,
    DrainFrame,
    HeartbeatFrame,
    LeaveFrame,
    RefusedFrame,
    RegisteredFrame,
    RegisterFrame,
    RegistryReply,
    RegistryRequest,
)
from dispatcher.protocol.link import Link
from dispatcher.sdk.fence import Fence
from dispatcher.sdk.load_window import LoadWindow

CHECK_EVERY = 2
"""Every so many heartbeats one more is sent that is answered: it finds out a lost lease."""
CONTESTED_S = 300.0
"""A lease lost twice within this time means another process under the same instance name."""
_TRANSIENT = frozenset(
    {
        "unavailable",
        "overloaded",
        "internal_error",
        "outcome_unknown",
        "delivery_failed",
        "refused",
        "unroutable",
    }
)
_LOST = frozenset({"unknown_agent", "unknown_instance", "lease_superseded"})

_log = logging.getLogger(__name__)
_replies: TypeAdapter[RegistryReply] = TypeAdapter(Annotated[RegistryReply, Field(discriminator="type")])


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceIdentity:
    """Who this process is. `name` is stable over restarts, `instance_id` new at every start."""

    agent_id: str
    name: str
    instance_id: InstanceId
    declaration: Declaration
    inbox: Literal["memory", "sqlite", "postgres"]
    inbox_id: str | None = None
    key: str | None = field(default=None, repr=False)


class Membership:
    """Keeps one instance registered. `running` tells the tasks in hand, for heartbeats."""

    def __init__(
        self,
        identity: InstanceIdentity,
        link: Link,
        clock: Clock,
        *,
        window: LoadWindow,
        running: Callable[[], int],
        backoff: BackoffRules | None = None,
    ) -> None:
        self._identity = identity
        self._link = link
        self._clock = clock
        self._window = window
        self._running = running
        self.fence = Fence(clock)
        """Open while the lease surely holds."""
        self._backoff = backoff or BackoffRules()
        self._lease: RegisteredFrame | None = None
        self._superseded_at: float | None = None
        self._draining = False

    @property
    def lease(self) -> RegisteredFrame | None:
        """The lease as last granted, None before."""
        return self._lease

    async def join(self) -> None:
        """Register, as often as it takes; raises `RegistrationError` when the dispatcher says no."""
        for tried in count(1):
            asked_at = self._clock.monotonic()
            reply = await self._ask(self._registration())
            if isinstance(reply, RegisteredFrame):
                self._accept(reply, asked_at)
                return
            if isinstance(reply, RefusedFrame) and reply.code not in _TRANSIENT:
                raise RegistrationError(reply.message, code=reply.code, fields=tuple(reply.fields))
            pause = doubled(self._backoff.first_s, tried, self._backoff.longest_s)
            _log.warning("registration.unanswered", extra={**self._facts(), "pause_s": pause})
            await self._clock.sleep(pause)

    async def stay(self) -> None:
        """Send heartbeats until the lease is lost: stop consuming then, before joining again.

        Raises `RegistrationError` when another process keeps taking the lease.
        """
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._keep_beating())
            reason = await self._loss()
            self.fence.lose()
            beating.cancel()
        _log.warning("lease.lost", extra={**self._facts(), "reason": reason})
        if reason == "lease_superseded":
            self._note_superseded()

    async def drain(self) -> None:
        """Tell the dispatcher to send nothing more. Best effort."""
        self._draining = True
        if self._lease is not None:
            await self._ask(DrainFrame(**self._lease_fields(self._lease)))

    async def leave(self) -> None:
        """Give the lease back. Best effort: unheard, it ends by itself."""
        if self._lease is not None:
            await self._ask(LeaveFrame(**self._lease_fields(self._lease)))

    def heartbeat(self) -> HeartbeatFrame:
        """What is told now."""
        now = self._clock.monotonic()
        total = self._window.total(now)
        return HeartbeatFrame(
            **self._lease_fields(self._require()),
            running=self._running(),
            requests=total.requests,
            errors=total.errors,
            p95_ms=total.p95_ms,
            capabilities=self._window.by_capability(now),
        )

    async def _keep_beating(self) -> None:
        while True:
            await self._clock.sleep(self._heartbeat_s)
            try:
                await self._link.beat(self.heartbeat().model_dump_json().encode())
            except DispatcherError as error:
                _log.warning("heartbeat.lost", extra={**self._facts(), "reason": error.error_code})

    async def _loss(self) -> str:
        """Ask about the lease until it is lost, and return why; a slow answer delays no heartbeat.

        Where a task waits for the answer it is asked a heartbeat after the last time.
        """
        while True:
            await self._clock.sleep(self._heartbeat_s)
            await self.fence.wanted((CHECK_EVERY - 1) * self._heartbeat_s)
            if self._draining:
                continue
            asked_at = self._clock.monotonic()
            reply = await self._ask(self.heartbeat())
            if isinstance(reply, AcknowledgedFrame):
                self.fence.confirm(asked_at, self._holds_s)
            if isinstance(reply, RefusedFrame) and reply.code in _LOST and not self._draining:
                return reply.code

    @property
    def _holds_s(self) -> float:
        return self._require().offline_after_ms / 1000

    @property
    def _heartbeat_s(self) -> float:
        return self._require().heartbeat_ms / 1000

    def _note_superseded(self) -> None:
        now, before = self._clock.monotonic(), self._superseded_at
        self._superseded_at = now
        if before is not None and now - before < CONTESTED_S:
            raise RegistrationError(
                f"another process runs as {self._identity.name!r} of agent {self._identity.agent_id}",
                code="lease_superseded",
            )

    async def _ask(self, request: RegistryRequest) -> RegistryReply | None:
        """The reply, None where none came or it can't be read."""
        try:
            return _replies.validate_json(await self._link.call(request.model_dump_json().encode()))
        except DispatcherError as error:
            _log.warning("registry.silent", extra={**self._facts(), "reason": error.message})
        except ValidationError:
            _log.warning("registry.unreadable", extra=self._facts())
        return None

    def _accept(self, granted: RegisteredFrame, asked_at: float) -> None:
        self._lease = granted
        self.fence.confirm(asked_at, self._holds_s)
        _log.info("registration.granted", extra={**self._facts(), "heartbeat_ms": granted.heartbeat_ms})
        for warning in granted.warnings:
            _log.warning("registration.warning", extra={**self._facts(), "warning": warning})

    def _registration(self) -> RegisterFrame:
        identity = self._identity
        return RegisterFrame(
            agent_id=identity.agent_id,
            instance_name=identity.name,
            instance_id=identity.instance_id,
            inbox=identity.inbox,
            inbox_id=identity.inbox_id,
            declaration=identity.declaration,
            key=identity.key,
        )

    def _lease_fields(self, lease: RegisteredFrame) -> dict[str, str]:
        return {
            "agent_id": self._identity.agent_id,
            "instance_id": self._identity.instance_id,
            "lease_id": LeaseId(lease.lease_id),
        }

    def _require(self) -> RegisteredFrame:
        if self._lease is None:
            raise RegistrationError("not registered yet", code="not_registered")
        return self._lease

    def _facts(self) -> dict[str, object]:
        return {"agent_id": self._identity.agent_id, "instance_id": self._identity.instance_id}
