"""The ledger's types: a request with its tasks and attempts, as one immutable state.

Times are milliseconds since the epoch by the database's clock (I10); `None` means not yet.
"""

from collections.abc import Mapping
from enum import StrEnum

from dispatcher.identifiers import AgentId, CallerId, Capability, InstanceId, ReplicaId, RequestId, TaskId
from dispatcher.intents.plan import Intent
from dispatcher.records import Struct, field


class RequestStatus(StrEnum):
    """Where a request stands; all but OPEN are terminal."""

    OPEN = "open"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    FALLBACK = "fallback"
    CANCELLED = "cancelled"


class TaskStatus(StrEnum):
    """Where a task stands; WAITING and OPEN are not terminal."""

    WAITING = "waiting"
    """Another task's result comes first."""
    OPEN = "open"
    """An attempt is due or running."""
    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_INPUT = "needs_input"
    UNAVAILABLE = "unavailable"
    OUT_OF_SCOPE = "out_of_scope"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    CLARIFY = "clarify"
    """It could be one of several things; the person is asked which."""
    HANDED_OFF = "handed_off"
    """A person does it; the request does not wait for that."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """It ran or may have run, its result got lost, and it must not simply run again."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing changes it any more (I3)."""
        return self not in (TaskStatus.WAITING, TaskStatus.OPEN)


class AttemptStatus(StrEnum):
    """Where an attempt stands; DUE and PUBLISHED are open, the others say how it ended."""

    DUE = "due"
    """In the outbox: to be published at `not_before_ms` or later."""
    PUBLISHED = "published"
    """The channel confirmed it."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_STARTED = "not_started"
    """Busy, expired before start, refused or unroutable: it surely did not run."""
    LAPSED = "lapsed"
    """No result in time; it may have run, and a valid result may still come."""
    ABANDONED = "abandoned"
    """The task ended otherwise: by another attempt's result, or at its deadline."""

    @property
    def is_open(self) -> bool:
        """Whether the attempt counts towards its agent's load."""
        return self in (AttemptStatus.DUE, AttemptStatus.PUBLISHED)


NOT_REACHED = frozenset({"unroutable", "endpoint_refused"})
"""Error codes of attempts that could not be handed over because of their agent: failures of its own."""


class Match(StrEnum):
    """How the capability that a caller asks for is found (requirement B4)."""

    STRICT = "strict"
    """By its exact name."""
    LOOSE = "loose"
    """By its name or an alias of it."""
    SEMANTIC = "semantic"
    """By a description, where that is clear enough; else a person takes it."""


class ChatMessage(Struct, frozen=True, kw_only=True):
    """A validated chat request, as the gateway hands it over.

    `capability` skips understanding: the whole message becomes one intent for it. `wanted` is what a
    caller says instead that does not know its name, to be found by `match`.
    `body_digest` identifies the body that an idempotency key was first used with.
    """

    message: str
    environment: str
    session_id: str | None = None
    user_id: str | None = None
    language: str | None = None
    context: Mapping[str, object] = field(default_factory=dict)
    capability: Capability | None = None
    match: Match = Match.STRICT
    wanted: str | None = None
    idempotency_key: str | None = None
    body_digest: str = ""


class Request(Struct, frozen=True, kw_only=True):
    """One posted message. `replica` is the one that accepted it and whose client may wait."""

    request_id: RequestId
    caller: CallerId
    replica: ReplicaId
    message: str
    language: str
    environment: str
    session_id: str | None
    user_id: str | None
    context: Mapping[str, object]
    idempotency_key: str | None
    body_digest: str
    status: RequestStatus
    answer: str | None
    created_ms: int
    deadline_ms: int
    finished_ms: int | None = None
    session_version: int | None = None
    """The version of the session's context that `context` was made from; None without a session."""


class Task(Struct, frozen=True, kw_only=True):
    """One intent given out. `position` is the intent's; there is exactly one task per intent.

    `timeout_ms` counts from `opened_ms` over all attempts. `inputs` are the fields resolved when
    it opened. `result_text`, `result_data` and `result_digest` come from the one terminal result.
    """

    task_id: TaskId
    request_id: RequestId
    position: int
    capability: Capability | None
    status: TaskStatus
    idempotent: bool
    timeout_ms: int
    similarity: float
    inputs: Mapping[str, object] = field(default_factory=dict)
    agent_id: AgentId | None = None
    score: float | None = None
    opened_ms: int | None = None
    deadline_ms: int | None = None
    finished_ms: int | None = None
    result_text: str | None = None
    result_data: Mapping[str, object] | None = None
    result_digest: str | None = None
    error_code: str | None = None
    """Stable code of why the part did not succeed; None when it did."""
    reason: str | None = None
    """The named fields, capability or intent the error is about; safe to show."""
    ranking: str | None = None
    """JSON of the ranking that a waiting task's decision will be made from; None once it opened."""
    retry_after_s: int | None = None
    idempotency_key: str | None = None
    """The key of the task that this one repeats; None for `request_id` and position (D5)."""
    repeat: int = 0
    """How often the key was given out again by an operator, this time included."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One try at a task with one agent, and at the same time its outbox row.

    A result is valid only with `token` (I5). `claimed_by` publishes it until `claimed_until_ms`;
    afterwards any replica may. `published_ms` is set once it was, or may have been, published: a
    claim that ran out leaves that open. `lapse_ms` is set when the channel confirmed it; for a long
    task (`lease_ms`) it follows the agent's `started` and `renew` signals from then on. `progress` is
    what the agent last said: `{fraction, note}`.
    """

    task_id: TaskId
    request_id: RequestId
    number: int
    agent_id: AgentId
    token: str
    status: AttemptStatus
    not_before_ms: int
    timeout_ms: int
    claimed_by: ReplicaId | None = None
    claimed_until_ms: int | None = None
    published_ms: int | None = None
    lapse_ms: int | None = None
    finished_ms: int | None = None
    error_code: str | None = None
    started_ms: int | None = None
    lease_ms: int | None = None
    progress: Mapping[str, object] | None = None

    @property
    def may_have_run(self) -> bool:
        """Whether its agent may have begun it: it was sent, or whoever claims it may have just done so.

        A claim that is given back says that nothing was sent, and leaves no trace.
        """
        maybe_sent = self.published_ms is not None or self.claimed_by is not None
        return maybe_sent and self.status is not AttemptStatus.NOT_STARTED


class RequestState(Struct, frozen=True, kw_only=True):
    """A request and everything that belongs to it; what rules read and return.

    `intents` and `tasks` are by position, `attempts` by (position of task, number).
    """

    request: Request
    intents: tuple[Intent, ...]
    tasks: tuple[Task, ...]
    attempts: tuple[Attempt, ...]

    def attempts_of(self, task_id: TaskId) -> tuple[Attempt, ...]:
        """The task's attempts, oldest first."""
        return tuple(a for a in self.attempts if a.task_id == task_id)


class ResultKind(StrEnum):
    """What became of a received result (I3, I5)."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """Same content as the accepted one."""
    CONFLICT = "conflict"
    """Other content than the accepted one."""
    LATE = "late"
    """The task had already ended without a result."""
    SUPERSEDED = "superseded"
    """Said that its attempt didn't run, or failed; another attempt is under way or was just made."""
    REJECTED = "rejected"
    """Token, task, attempt or agent do not fit."""


class ResultRecord(Struct, frozen=True, kw_only=True):
    """One received result frame and what became of it; kept for every frame.

    `document` is the frame's JSON without the token.
    """

    task_id: TaskId
    request_id: RequestId
    attempt: int
    instance_id: InstanceId
    kind: ResultKind
    document: str


class PartialRecord(Struct, frozen=True, kw_only=True):
    """One piece of a result on its way; `document` is the JSON of `{text, data}`."""

    task_id: TaskId
    request_id: RequestId
    attempt: int
    sequence: int
    document: str


class DecisionRecord(Struct, frozen=True, kw_only=True):
    """The decision behind attempt `number` (from 1) of the intent at `position`; `document` is its JSON.

    Number 1 is kept even if it led to no attempt.
    """

    request_id: RequestId
    position: int
    number: int
    document: str


class HandoffRecord(Struct, frozen=True, kw_only=True):
    """A task that a person does from now on; `described` as of `handoff.Handoff`."""

    request_id: RequestId
    task_id: TaskId
    described: str | None = None


MAX_DEAD_BODY = 16_384


class DeadFrame(Struct, frozen=True, kw_only=True):
    """A frame that belongs to no known task; `body` is its text, cut to MAX_DEAD_BODY characters."""

    dead_id: str
    source: str
    reason: str
    size_bytes: int
    body: str
