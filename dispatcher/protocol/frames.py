"""Frames: the versioned messages between dispatcher and agents (ATP, version 1).

A receiver accepts every frame of the major version it knows and ignores fields it does not
know, so that either side can be upgraded first. Senders set only the fields declared here.
Times never cross the wire as clock readings, only as remaining budgets in milliseconds (I10).
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from dispatcher.protocol.declaration import Declaration, Name
from dispatcher.protocol.storable import storable, storable_text

VERSION: Literal[1] = 1

Text = Annotated[str, AfterValidator(storable_text)]
"""Text without NUL and half surrogate pairs: what an agent sends has to be kept."""
Document = Annotated[dict[str, JsonValue], AfterValidator(storable)]
"""A JSON object that has no flaw by `storable`."""
Identifier = Annotated[Text, Field(min_length=1, max_length=128)]
Token = Annotated[str, Field(min_length=16, max_length=128, pattern=r"^[!-~]+$")]
"""Visible ASCII: only that is compared in constant time."""


class Frame(BaseModel):
    """What all frames have in common: the protocol's major version and a `type`."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    v: Literal[1] = VERSION


class TaskPayload(BaseModel):
    """What is to be done: the intent's own words and the input fields that were found for it."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    text: str
    input: dict[str, JsonValue] = {}
    entities: list[dict[str, JsonValue]] = []


class TaskContext(BaseModel):
    """Who asks and in which situation; `data` is what the caller sent as `context`."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    caller: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    language: str | None = None
    environment: str | None = None
    data: dict[str, JsonValue] = {}


class TaskFrame(Frame):
    """One attempt at one task, for one agent.

    `budget_ms` is what remains of the attempt when the frame is published; a receiver that
    can't start within `start_within_ms` answers `expired` without running. `hop` counts
    forwardings between dispatchers (0 here).

    `lease_ms` marks a long task. Its agent says `started`, acknowledges the delivery at once instead
    of holding it, and says `renew` at least once in every `lease_ms` while the handler runs.

    `repeat` counts how often an operator had the task done again under its old key: what succeeded is
    told again, what failed may run again if it is idempotent.
    """

    type: Literal["task"] = "task"
    request_id: Identifier
    task_id: Identifier
    attempt: Annotated[int, Field(ge=1, le=3)]
    idempotency_key: Identifier
    token: Token
    agent_id: Name
    capability: Name
    payload: TaskPayload
    context: TaskContext = TaskContext()
    budget_ms: Annotated[int, Field(ge=0)]
    start_within_ms: Annotated[int, Field(ge=0)]
    lease_ms: Annotated[int, Field(ge=1)] | None = None
    reply_to: str
    hop: Annotated[int, Field(ge=0)] = 0
    repeat: Annotated[int, Field(ge=0)] = 0
    traceparent: str | None = None


class ResultStatus(StrEnum):
    """How an attempt ended, as the agent says it."""

    SUCCESS = "success"
    ERROR = "error"
    BUSY = "busy"
    """Not run: no room. The task may go to another agent."""
    EXPIRED = "expired"
    """Not run: its start came too late."""
    NEEDS_INPUT = "needs_input"
    """Not finished: `result.text` asks the person for what is missing."""


class ResultBody(BaseModel):
    """`text` is for a person, `data` for the intents that build on it.

    A result frame is refused whose text or JSON can't be kept: integers beyond ±(2^63-1), numbers
    that are not finite, NUL, half surrogate pairs, more than 32 levels.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    text: Text | None = None
    data: Document = {}


class ResultFrame(Frame):
    """An agent's terminal reply to one attempt, valid only with the attempt's token (I5).

    `error_message` is for operators and never reaches the person who asked. `business_error`
    marks a reply that counts as a failure of the agent although the call itself worked.
    """

    type: Literal["result"] = "result"
    request_id: Identifier
    task_id: Identifier
    attempt: Annotated[int, Field(ge=1, le=3)]
    token: Token
    instance_id: Identifier
    status: ResultStatus
    result: ResultBody = ResultBody()
    business_error: bool = False
    error_code: Annotated[Text, Field(max_length=64)] | None = None
    error_message: Annotated[Text, Field(max_length=2000)] | None = None
    can_retry: bool = False
    usage: Document = {}
    context_update: Document = {}


class AttemptSignal(Frame):
    """What every message about a running attempt carries."""

    request_id: Identifier
    task_id: Identifier
    attempt: Annotated[int, Field(ge=1, le=3)]
    token: Token
    instance_id: Identifier


class StartedFrame(AttemptSignal):
    """The handler is about to begin; for a long task its lease runs from here."""

    type: Literal["started"] = "started"


class ProgressFrame(AttemptSignal):
    """How far the handler is: `fraction` in [0, 1] when known."""

    type: Literal["progress"] = "progress"
    fraction: Annotated[float, Field(ge=0, le=1)] | None = None
    note: Annotated[Text, Field(max_length=500)] | None = None


class PartialFrame(AttemptSignal):
    """A piece of the result, in order by `sequence` from 0. The result frame still holds all of it."""

    type: Literal["partial"] = "partial"
    sequence: Annotated[int, Field(ge=0)]
    result: ResultBody


class RenewFrame(AttemptSignal):
    """The handler still runs: the attempt's lease runs anew, for the task frame's `lease_ms`."""

    type: Literal["renew"] = "renew"


SignalFrame = StartedFrame | ProgressFrame | PartialFrame | RenewFrame
"""Says how an attempt goes on. Counts only from the newest attempt, and may be lost (I3)."""
ReportFrame = Annotated[ResultFrame | SignalFrame, Field(discriminator="type")]
"""What agents send to the result exchange."""


class CancelFrame(Frame):
    """Dispatcher to every instance of an agent: stop working on this task."""

    type: Literal["cancel"] = "cancel"
    request_id: Identifier
    task_id: Identifier
    agent_id: Name
    reason: Annotated[str, Field(max_length=64)]


class RegisterFrame(Frame):
    """An instance announces itself and what its agent can do.

    `instance_name` is stable over restarts (a host name, a pod ordinal); `instance_id` is new
    at every start. `inbox_id` names the memory of what was done and is as lasting as that memory;
    None where it ends with the process. `key` is the agent's API key (over HTTP it travels as a
    header instead).
    """

    type: Literal["register"] = "register"
    agent_id: Name
    instance_name: Name
    instance_id: Identifier
    inbox: Literal["memory", "sqlite", "postgres"] = "memory"
    inbox_id: Identifier | None = None
    declaration: Declaration
    key: Annotated[str, Field(max_length=256)] | None = None


class RegisteredFrame(Frame):
    """The lease granted to an instance; heartbeats are due every `heartbeat_ms`."""

    type: Literal["registered"] = "registered"
    agent_id: Name
    instance_id: Identifier
    lease_id: Identifier
    heartbeat_ms: Annotated[int, Field(ge=1)]
    offline_after_ms: Annotated[int, Field(ge=1)]
    declaration_digest: str
    warnings: list[str] = []


class RefusedFrame(Frame):
    """Why a register, drain, leave or heartbeat frame was refused; `code` is stable."""

    type: Literal["refused"] = "refused"
    code: str
    message: str
    fields: list[str] = []


class CapabilityLoad(BaseModel):
    """What an instance saw of one capability in the last five minutes."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    requests: Annotated[int, Field(ge=0)] = 0
    errors: Annotated[int, Field(ge=0)] = 0
    p95_ms: Annotated[float, Field(ge=0)] | None = None


class HeartbeatFrame(Frame):
    """An instance is alive. Only the receiver's clock counts: the frame carries no time."""

    type: Literal["heartbeat"] = "heartbeat"
    agent_id: Name
    instance_id: Identifier
    lease_id: Identifier
    running: Annotated[int, Field(ge=0)]
    requests: Annotated[int, Field(ge=0)] = 0
    errors: Annotated[int, Field(ge=0)] = 0
    p95_ms: Annotated[float, Field(ge=0)] | None = None
    dependencies_healthy: bool = True
    capabilities: dict[str, CapabilityLoad] = {}


class DrainFrame(Frame):
    """The instance takes no new work; what it has it finishes."""

    type: Literal["drain"] = "drain"
    agent_id: Name
    instance_id: Identifier
    lease_id: Identifier


class LeaveFrame(Frame):
    """The instance is gone; its lease ends now."""

    type: Literal["leave"] = "leave"
    agent_id: Name
    instance_id: Identifier
    lease_id: Identifier


class AcknowledgedFrame(Frame):
    """The drain or leave frame took effect, or the heartbeat's lease holds."""

    type: Literal["acknowledged"] = "acknowledged"


RegistryRequest = RegisterFrame | DrainFrame | LeaveFrame | HeartbeatFrame
"""What is answered. A heartbeat sent this way asks whether the lease still holds."""
RegistryReply = RegisteredFrame | RefusedFrame | AcknowledgedFrame


def wire_schemas() -> dict[str, dict[str, Any]]:
    """JSON Schema of every frame, by frame type; what the published files are made from."""
    frames: tuple[type[Frame], ...] = (
        TaskFrame,
        ResultFrame,
        StartedFrame,
        ProgressFrame,
        PartialFrame,
        RenewFrame,
        CancelFrame,
        RegisterFrame,
        RegisteredFrame,
        RefusedFrame,
        HeartbeatFrame,
        DrainFrame,
        LeaveFrame,
        AcknowledgedFrame,
    )
    return {frame.model_fields["type"].default: frame.model_json_schema() for frame in frames}
