"""What dispatch needs to keep: the contract that a store fulfils.

The database is the ledger, the broker is transport. Changes of many requests share one
transaction; each method returns only after its commit. A rule (`Build`, `Decide`) is called
inside that transaction with the database's time and must be quick, pure and repeatable: when
a batch fails it is called again with fresh state.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    DeadFrame,
    DecisionRecord,
    HandoffRecord,
    PartialRecord,
    Request,
    RequestState,
    ResultRecord,
    Task,
    TaskStatus,
)
from dispatcher.dispatch.lifecycle.session import Session, SessionChange
from dispatcher.identifiers import AgentId, CallerId, Capability, ReplicaId, RequestId, TaskId
from dispatcher.records import Struct


class Step(Struct, frozen=True, kw_only=True):
    """What a rule wants written: the new state and the records that go with it."""

    state: RequestState
    results: tuple[ResultRecord, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    partials: tuple[PartialRecord, ...] = ()
    handoffs: tuple[HandoffRecord, ...] = ()
    session: SessionChange | None = None


Build = Callable[[int], Step]
"""Database time in ms -> the first state of a new request."""
Decide = Callable[[RequestState, int], Step]
"""Current state and database time in ms -> the next state; an equal state writes nothing of it."""


class Offer(Struct, frozen=True, kw_only=True):
    """A request to be accepted. With a key, (caller, key) is unique among all requests."""

    request_id: RequestId
    caller: CallerId
    idempotency_key: str | None
    body_digest: str
    build: Build


class KeyedRequest(Struct, frozen=True, kw_only=True):
    """The request that an idempotency key already belongs to."""

    request_id: RequestId
    body_digest: str


class Change(Struct, frozen=True, kw_only=True):
    """A committed change: the state before (None for a new request) and after, and the time used."""

    before: RequestState | None
    after: RequestState
    now_ms: int

    def new_attempts(self) -> tuple[Attempt, ...]:
        """Attempts that this change added."""
        known = {(a.task_id, a.number) for a in self.before.attempts} if self.before else set()
        return tuple(a for a in self.after.attempts if (a.task_id, a.number) not in known)


class Due(Struct, frozen=True, kw_only=True):
    """An attempt claimed for publishing, with what its frame is made of."""

    request: Request
    task: Task
    attempt: Attempt
    text: str
    entities: tuple[Mapping[str, object], ...]
    now_ms: int


class OutcomeCount(Struct, frozen=True, kw_only=True):
    """How often attempts of an agent at a capability succeeded or failed, each decayed by age."""

    agent_id: AgentId
    capability: Capability
    succeeded: float
    failed: float


class DeadEntry(Struct, frozen=True, kw_only=True):
    """A dead letter: a task that ended without success, or a frame that belongs to none.

    `dead_id` is the task's id, or the frame's own; `age_ms` is the time since it ended. `retried_as`
    is the newest request that repeats the task. `frame` is there for frames alone, everything about
    a task for tasks alone.
    """

    dead_id: str
    ended_ms: int
    age_ms: int
    error_code: str | None
    caller: CallerId | None = None
    request_id: RequestId | None = None
    capability: Capability | None = None
    agent_id: AgentId | None = None
    status: TaskStatus | None = None
    attempts: int = 0
    retried_as: RequestId | None = None
    retries: int = 0
    frame: DeadFrame | None = None


class DeadQuery(Struct, frozen=True, kw_only=True):
    """Which dead letters: one by its id, or the newest `limit` of these error codes.

    `codes` None means all; with `excluded` all but these. Those that were retried are left out
    unless `retried`.
    """

    dead_id: str | None = None
    codes: frozenset[str] | None = None
    excluded: bool = False
    agent_id: AgentId | None = None
    capability: Capability | None = None
    retried: bool = True
    limit: int = 50


NO_PACES: Mapping[AgentId, float] = MappingProxyType({})


class Ledger(Protocol):
    """Requests, intents, tasks, attempts, results and decisions.

    When its queue is full, `accept` and `find_by_key` raise OverloadedError before anything is stored,
    and UnavailableError when the database has not answered for a while; `update`, `mark_published` and
    `read` wait for room and for the answer. When the database can't be reached all raise
    UnavailableError; nothing of the call is stored then, or its outcome is unknown and the same
    call may be made again.
    """

    async def accept(self, offer: Offer) -> Change | KeyedRequest:
        """Store a new request, or return the one that its caller's key already belongs to."""
        ...

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """Change one request under a row lock; None where there is no such request.

        Within one batch the rules of one request run in order of arrival, each on the state the
        one before left. Row locks are taken in key order. A result and the attempts it makes
        ready are therefore one transaction.
        """
        ...

    async def mark_published(self, attempt: Attempt) -> None:
        """Set a DUE attempt to PUBLISHED and its `lapse_ms` to now + `timeout_ms`.

        Never later than the task's deadline. Does nothing to an attempt that is not DUE any more.
        Grouped with others.
        """
        ...

    async def read(self, request_id: RequestId) -> RequestState | None:
        """The committed state."""
        ...

    async def read_decisions(self, request_id: RequestId) -> tuple[DecisionRecord, ...]:
        """All decisions of a request by (position, number)."""
        ...

    async def read_partials(
        self, request_id: RequestId, task_id: TaskId, start: tuple[int, int], limit: int
    ) -> tuple[PartialRecord, ...]:
        """At most `limit` pieces of a task's results from (attempt, sequence) on, in this order.

        Each piece is kept once.
        """
        ...

    async def read_session(self, caller: CallerId, session_id: str) -> Session:
        """What is known of the session; a new one, of version 0, where nothing is."""
        ...

    async def bury(self, frame: DeadFrame) -> None:
        """Keep a frame that belongs to no known task."""
        ...

    async def dead(self, wanted: DeadQuery) -> Sequence[DeadEntry]:
        """Dead letters, newest first."""
        ...

    async def find_by_key(self, caller: CallerId, idempotency_key: str) -> KeyedRequest | None:
        """The request a caller's key belongs to."""
        ...

    async def claim_due(
        self,
        replica: ReplicaId,
        room: Mapping[AgentId, int],
        claim_s: float,
        *,
        paces: Mapping[AgentId, float] = NO_PACES,
    ) -> tuple[Due, ...]:
        """Claim DUE, unclaimed attempts whose time has come: at most `room[agent]` per agent, oldest first.

        Two replicas never hold a claim on one attempt at the same time; a claim ends by itself
        after `claim_s` seconds. An attempt that was claimed before gets `published_ms`: it may have
        been sent. Agents not in `room` get none. Over all replicas an agent in `paces` gets at most
        that many per second.
        """
        ...

    async def due_agents(self) -> frozenset[AgentId]:
        """Agents with attempts that `claim_due` could return now."""
        ...

    async def overdue(self, limit: int) -> tuple[RequestId, ...]:
        """Open requests past their deadline, or with a lapsed attempt or an overdue task; oldest first."""
        ...

    async def unanswered(self, agents: Collection[AgentId], age_s: float, limit: int) -> Sequence[Attempt]:
        """PUBLISHED attempts at these agents, confirmed more than `age_s` seconds ago; oldest first."""
        ...

    async def open_attempts(self) -> Mapping[AgentId, int]:
        """Number of DUE and PUBLISHED attempts per agent, over all replicas."""
        ...

    async def published_attempts(self) -> Mapping[AgentId, int]:
        """Number of PUBLISHED attempts, and of DUE ones under a claim, per agent, over all replicas."""
        ...

    async def outcome_counts(self, half_life_s: float) -> Sequence[OutcomeCount]:
        """Ended attempts of the last 24 h, each weighing 0.5 ** (age / half_life_s)."""
        ...


AttemptKey = tuple[TaskId, int]
