"""What the gateway is built from: the protocols it calls and the rules it keeps."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dispatcher.dispatch.lifecycle.cursor import Cursor
from dispatcher.dispatch.lifecycle.dead_letter import Cause
from dispatcher.dispatch.lifecycle.events import Event
from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.dispatch.lifecycle.judgement import Judgement
from dispatcher.dispatch.lifecycle.ledger import DeadEntry, DeadQuery
from dispatcher.dispatch.lifecycle.request import ChatMessage, DecisionRecord, RequestState
from dispatcher.dispatch.route_query import RouteList
from dispatcher.identifiers import AgentId, Capability, LeaseId, RequestId, TaskId
from dispatcher.intents.plan import Plan
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.direct import DirectKeys
from dispatcher.protocol.frames import HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.protocol.link import Settlement
from dispatcher.registry.access import Identity
from dispatcher.registry.description import AgentDescription
from dispatcher.routing.decision import Decision
from dispatcher.routing.stored_calibration import State, Stored, Unreadable


class Submitted(Protocol):
    """An accepted request; `replayed` when its idempotency key had been seen before."""

    @property
    def request_id(self) -> RequestId:
        """The request that was made, or that the key already belonged to."""
        ...

    @property
    def replayed(self) -> bool:
        """Whether nothing new was accepted."""
        ...


class Explanation(Protocol):
    """How a message would be understood and routed now."""

    @property
    def plan(self) -> Plan:
        """The intents and what they wait for."""
        ...

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """One decision for each intent, by position."""
        ...


class ChatDispatcher(Protocol):
    """Takes requests and tells how they stand."""

    async def submit(self, message: ChatMessage, identity: Identity, *, waits: bool = True) -> Submitted:
        """Accept a request durably; raises RequestError or OverloadedError when nothing was accepted.

        `waits` tells that `wait` comes next.
        """
        ...

    async def wait(self, request_id: RequestId, seconds: float) -> RequestState:
        """The state when terminal, or when the time is up."""
        ...

    async def read(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        """The state; None also for another caller's request."""
        ...

    async def cancel(self, request_id: RequestId, identity: Identity) -> RequestState | None:
        """End what has not ended; the state after it, None also for another caller's request."""
        ...

    async def decisions(self, request_id: RequestId, identity: Identity) -> tuple[DecisionRecord, ...] | None:
        """The stored decisions; None also for another caller's request."""
        ...

    async def explain(self, message: ChatMessage, identity: Identity) -> Explanation:
        """Plan and route without sending or storing anything."""
        ...


class FoundDead(Protocol):
    """A dead letter and its request."""

    @property
    def entry(self) -> DeadEntry:
        """What is dead."""
        ...

    @property
    def state(self) -> RequestState | None:
        """The request it belongs to; None for a frame that belongs to none."""
        ...


class DeadLetters(Protocol):
    """Work that did not succeed; raises RequestError where there is no such thing."""

    async def list(self, cause: Cause | None, wanted: DeadQuery) -> Sequence[DeadEntry]:
        """Newest first."""
        ...

    async def show(self, dead_id: str) -> FoundDead:
        """One of them."""
        ...

    async def retry(self, dead_id: str, to: AgentId | None = None, key: str | None = None) -> RequestId:
        """Have it done again, by that agent if one is named; the new request, the same for the same `key`."""
        ...


class Handoffs(Protocol):
    """Parts that people do."""

    async def list(self, *, answered: bool, limit: int, after: TaskId | None = None) -> Sequence[Handoff]:
        """Open ones, the oldest first, or answered ones, the latest answer first; those behind `after`."""
        ...

    async def of(self, state: RequestState) -> Mapping[TaskId, Handoff]:
        """Those of a request, by task."""
        ...

    async def answer(self, task_id: TaskId, answer: str, by: str) -> Handoff:
        """Keep a person's answer; raises RequestError `not_found` or `already_answered`."""
        ...


class Calibrations(Protocol):
    """Stored calibrations; raises RequestError `not_found` where there is none of a number."""

    async def list(self) -> Sequence[Stored | Unreadable]:
        """The newest ones first."""
        ...

    async def show(self, number: int) -> Stored:
        """One of them; raises RequestError `not_readable` as well."""
        ...

    async def change(self, number: int, state: State, by: str) -> Stored | Unreadable:
        """Give it another state.

        Raises RequestError `not_readable`, `other_encoder` or `other_contrast` as well.
        """
        ...


class RequestWatcher(Protocol):
    """Tells what happens to a request while it happens."""

    def place(self) -> AbstractContextManager[None]:
        """A place among the clients that wait; entering raises OverloadedError where all are taken."""
        ...

    def follow(
        self, request_id: RequestId, cursor: Cursor, quiet_s: float
    ) -> AsyncGenerator[tuple[Event, ...]]:
        """What happens after the cursor, up to the answer; nothing at all after a complete cursor.

        An empty tuple says that nothing happened for `quiet_s` seconds, or that this replica stops.
        """
        ...


class AgentRegistrar(Protocol):
    """Registers agents; all raise RegistrationError when a rule says no."""

    async def register(self, frame: RegisterFrame, *, client: str | None = None) -> RegisteredFrame:
        """Give an instance its lease; `client` is the other host that asks, None if it is this one."""
        ...

    async def heartbeat_checked(self, frame: HeartbeatFrame) -> None:
        """Take a sign of life whose sender waits to hear whether its lease still holds."""
        ...

    async def drain(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        """Give the instance no new work."""
        ...

    async def leave(self, agent_id: AgentId, lease_id: LeaseId) -> None:
        """End the lease."""
        ...

    async def remove(self, agent_id: AgentId) -> None:
        """Forget the agent with all its instances."""
        ...

    def describe(self) -> Sequence[AgentDescription]:
        """Every agent, declared and observed, by agent id."""
        ...

    def describe_one(self, agent_id: AgentId) -> AgentDescription | None:
        """One agent; None for an unknown one."""
        ...


class AccessControl(Protocol):
    """Knows the keys."""

    async def authenticate(self, bearer: str) -> Identity | None:
        """Who holds this key; None for an unknown, wrong or revoked one.

        Asked with an empty string when no key was sent: development mode answers with its one
        identity then.
        """
        ...


class CapabilityRank(Protocol):
    """One capability's place in a ranking."""

    @property
    def capability(self) -> Capability:
        """The capability's name."""
        ...

    @property
    def agent_cosines(self) -> Mapping[AgentId, float]:
        """The cosine of each agent that declares it, `NOT_SEARCHED` for one beyond the search limit."""
        ...

    @property
    def cosine(self) -> float:
        """The best agent's."""
        ...

    @property
    def similarity(self) -> float:
        """Calibrated, in [0, 1]."""
        ...

    @property
    def score(self) -> float:
        """What decides the order: `cosine` with the lexical share added."""
        ...


class TextRanking(Protocol):
    """How one text ranks among all capabilities."""

    @property
    def text(self) -> str:
        """The text asked about."""
        ...

    @property
    def capabilities(self) -> Sequence[CapabilityRank]:
        """Best first."""
        ...

    @property
    def in_scope(self) -> bool:
        """The scope floor's verdict."""
        ...

    @property
    def scope_score(self) -> float:
        """On the encoder's contrastive scale."""
        ...

    @property
    def scope_floor(self) -> float:
        """On the same scale."""
        ...

    @property
    def calibration(self) -> str:
        """What the similarity curve was fitted on."""
        ...


Trial = Callable[[AgentId, Declaration, Sequence[str]], Awaitable[Sequence[TextRanking]]]
"""Rank texts as if the agent were registered with this declaration; changes nothing."""

AcceptResult = Callable[[TaskId, bytes, AgentId | None], Awaitable[Settlement]]
"""Take an encoded result frame for a task, from the agent whose key it came with, if it is one.

The settlement says whether it is stored; raises RequestError `result_refused` for a wrong token.
"""

AskRoute = Callable[[Capability, str, Identity], Awaitable[RouteList | None]]
"""Who would take work of a capability in an environment now; None for what is unknown or not granted."""

Judge = Callable[[RequestState, Sequence[Judgement], Identity], Awaitable[None]]
"""Store what somebody says of a request that he may read; raises RequestError where it can't be so."""

AgentKeys = Callable[[AgentId], Awaitable[DirectKeys | None]]
"""An agent's keys for direct calls; None for one that is not registered or allows none."""

Readiness = Callable[[], Mapping[str, str | None]]
"""Each part's name with None when it is ready, else one sentence that says why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRules:
    """Limits and defaults of the HTTP side; times in seconds."""

    default_environment: str
    max_body_bytes: int = 65_536
    body_timeout_s: float = 10.0
    """From the headers to the last byte of a body; slower ones get 408."""
    default_wait_s: float = 30.0
    max_wait_s: float = 300.0
    stream_stall_s: float = 30.0
    """A reader of a stream that takes nothing for so long is cut off; it may resume."""
    stream_quiet_s: float = 15.0
    """A stream on which nothing happened for so long sends a comment, to keep it open."""
    max_arriving: int = 256
    """Messages being read, understood and stored at once; the next gets 503 unread."""
    docs: bool = True
    """Serve `/docs` and `/openapi.json`, both without a key."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """Everything `create_app` needs. `stopping` turns true when shutdown begins and stays true."""

    dispatcher: ChatDispatcher
    watcher: RequestWatcher
    registrar: AgentRegistrar
    access: AccessControl
    trial: Trial
    ask_route: AskRoute
    agent_keys: AgentKeys
    accept_result: AcceptResult
    dead: DeadLetters
    calibrations: Calibrations
    judge: Judge
    people: Handoffs
    readiness: Readiness
    rules: GatewayRules
    stopping: Callable[[], bool] = _never
