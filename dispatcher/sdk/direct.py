"""The endpoint of an agent over HTTP that may be called directly while the dispatcher is gone.

    async with DirectGate(agent, inbox, credential="…") as gate:
        ...

    @app.post("/tasks")
    async def tasks(request: Request) -> Response:
        reply = await gate.answer(request.headers, await request.body())
        return Response(reply.body, reply.status, reply.headers)

    @app.delete("/tasks/{task_id}")
    async def cancel(request: Request, task_id: str) -> Response:
        return Response(status_code=gate.cancel(request.headers, task_id).status)

Nobody gets past it without showing that the dispatcher sent it, by the credential that only the
dispatcher has (`http.credentials`) or by a ticket (I6). Both kinds of calls go through one inbox.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pydantic import ValidationError

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import ConfigurationError, DispatcherError
from dispatcher.identifiers import CallerId, caller_scope, new_id
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.direct import TICKET_HEADER, DirectKeys, Permit
from dispatcher.protocol.frames import TaskFrame
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.call_pace import CallPace
from dispatcher.sdk.endpoint_runs import EndpointRuns, NoResult, Told
from dispatcher.sdk.held_keys import HeldKeys
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.parts import IntakeRules

_log = logging.getLogger(__name__)
_JSON = MappingProxyType({"Content-Type": "application/json"})
_NO_MORE = frozenset({"not_found", "unknown_agent", "forbidden", "unauthenticated"})
"""What the dispatcher says where it grants no direct calls any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """Times in seconds.

    Tickets are admitted for at most `keep_s` after the dispatcher last told its keys, which is asked
    again after `retry_s` where it gave no answer. Work in hand has `drain_s` to end on leaving.
    """

    keep_s: float = 3600.0
    retry_s: float = 5.0
    drain_s: float = 10.0
    intake: IntakeRules = field(default_factory=IntakeRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReply:
    """What the endpoint answers."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


_BUSY = GateReply(status=503, headers={"Retry-After": "1"})
"""Surely not started."""
_TOO_FAST = GateReply(status=429, headers=_BUSY.headers)
_NO_RESULT = MappingProxyType({NoResult.RUNS: GateReply(status=202), NoResult.UNKNOWN: GateReply(status=503)})
"""202 ends no attempt; without Retry-After 503 says that it may have run: only what is idempotent goes
elsewhere."""
_CANCELLED = GateReply(status=204)


class DirectGate:
    """Checks calls and runs them with the agent's handlers, each task at most once per inbox (I2).

    An async context manager. `credential` is what the operator set for this agent in
    `http.credentials`; without one, calls with a ticket are the only ones that get past.
    """

    def __init__(
        self,
        agent: Agent,
        inbox: Inbox,
        *,
        credential: str | None = None,
        rules: GateRules | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._agent = agent
        self._credential = credential
        self._rules = rules or GateRules()
        self._clock = clock or SystemClock()
        self._keys = HeldKeys(self._rules.keep_s, self._clock)
        self._pace = CallPace(agent.declaration().max_qps)
        self._runs = EndpointRuns(agent, inbox, new_id(), rules=self._rules.intake, clock=self._clock)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._runs.open(self._rules.drain_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def running(self) -> int:
        """Tasks whose handlers are at work, for heartbeats."""
        return self._runs.running

    def declaration(self, endpoint: str) -> Declaration:
        """The agent's own, for the channel `http` at this endpoint and open to direct calls."""
        changes = {"channel": "http", "endpoint": endpoint, "direct_fallback": True}
        return Declaration.model_validate({**self._agent.declaration().model_dump(), **changes})

    def learn(self, document: Mapping[str, Any]) -> DirectKeys:
        """Take what `GET /v1/agents/{agent_id}/direct-keys` answered; what was known before is forgotten.

        Raises `ConfigurationError` for anything but this agent's keys.
        """
        try:
            keys = DirectKeys.model_validate(document)
        except ValidationError as error:
            raise ConfigurationError("that are no keys for direct calls") from error
        if keys.agent_id != self._agent.agent_id:
            raise ConfigurationError(f"these are not the keys of agent {self._agent.agent_id}")
        self._keys.learn(keys)
        return keys

    async def renew(self, fetch: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
        """Fetch and learn keys for ever; run it beside the endpoint, e.g. with `Client.direct_keys`.

        A dispatcher that does not answer changes nothing; one that grants no keys ends them.
        """
        while True:
            try:
                pause_s = self.learn(await fetch()).renew_in_s
            except DispatcherError as error:
                pause_s = self._rules.retry_s
                _log.warning("direct_keys.not_renewed", extra={"reason": error.error_code})
                if error.error_code in _NO_MORE:
                    self._keys.forget()
            await self._clock.sleep(pause_s)

    async def answer(self, headers: Mapping[str, str], body: bytes) -> GateReply:
        """The reply to one `POST`; whoever gives up waiting for it disturbs nothing."""
        named = {name.lower(): value for name, value in headers.items()}
        if len(body) > MAX_FRAME_BYTES:
            return GateReply(status=413)
        try:
            task = TaskFrame.model_validate_json(body)
        except ValidationError:
            return GateReply(status=400)
        refusal = self._refusal(named, task)
        if refusal is not None:
            facts = {"agent_id": self._agent.agent_id, "capability": task.capability}
            _log.warning("call.refused", extra={**facts, "status": refusal.status})
            return refusal
        return await self._answered(task)

    def cancel(self, headers: Mapping[str, str], task_id: str) -> GateReply:
        """The reply to one `DELETE` of a task: its handler is told to stop, or never starts.

        Only the dispatcher may, by its credential.
        """
        if not self._is_dispatcher({name.lower(): value for name, value in headers.items()}):
            return GateReply(status=401)
        self._runs.cancel(task_id)
        return _CANCELLED

    def _refusal(self, headers: Mapping[str, str], task: TaskFrame) -> GateReply | None:
        """Why the call does not get past; None where it does."""
        ticket = headers.get(TICKET_HEADER.lower())
        if ticket is None and not self._is_dispatcher(headers):
            return GateReply(status=401)
        if task.agent_id != self._agent.agent_id:
            return GateReply(status=403)
        if ticket is None:
            return None
        caller = task.context.caller or ""
        permit = Permit(caller=caller, capability=task.capability, agent_id=task.agent_id)
        if not self._keys.admits(ticket, permit) or not _is_own(task, caller):
            return GateReply(status=403)
        return None if self._pace.has_room(self._clock.monotonic()) else _TOO_FAST

    def _is_dispatcher(self, headers: Mapping[str, str]) -> bool:
        sent, known = headers.get("authorization", ""), self._credential
        wanted = f"Bearer {known}".encode()
        return known is not None and hmac.compare_digest(sent.encode(errors="replace"), wanted)

    async def _answered(self, task: TaskFrame) -> GateReply:
        self._pace.note(self._clock.monotonic())
        try:
            reply = await self._runs.answer(task)
        except DispatcherError as error:
            _log.warning("call.failed", extra={"task_id": task.task_id, "reason": error.error_code})
            return _BUSY
        if not isinstance(reply, Told):
            return _NO_RESULT[reply]
        pause = _BUSY.headers if reply.asks_pause else {}
        return GateReply(status=200, body=reply.frame, headers={**_JSON, **pause})


def _is_own(task: TaskFrame, caller: str) -> bool:
    """A task under a key of that caller alone: nobody reads or repeats what is another's."""
    is_plain = task.repeat == 0 and task.lease_ms is None
    return is_plain and task.idempotency_key.startswith(caller_scope(CallerId(caller)))
