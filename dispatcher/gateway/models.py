"""What goes in and out over HTTP: bodies that are checked, replies that are documented.

Replies are written from the dispatcher's own values; these models are their published form, and
the tests hold every reply against them. Frames of the agent protocol are published as they are.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dispatcher.gateway.bodies import VisibleText
from dispatcher.protocol.declaration import Declaration, Name


class TrialBody(BaseModel):
    """A declaration that is not registered yet, and texts to try it with.

    `agent_id` is the agent it would replace; None means a new one, or the key's own agent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    declaration: Declaration
    texts: Annotated[
        list[Annotated[VisibleText, Field(max_length=2_000)]], Field(min_length=1, max_length=20)
    ]
    agent_id: Name | None = None


class Reply(BaseModel):
    """What a reply has in common: nothing beyond its documented fields."""

    model_config = ConfigDict(extra="forbid")


class PartResult(Reply):
    """An agent's words for a person, and its data."""

    text: str | None
    data: dict[str, JsonValue]


class PartError(Reply):
    """Why a part has no result: a stable code and one plain sentence."""

    code: str
    message: str


class PartProgress(Reply):
    """How far an attempt is by its agent's words; `fraction` in [0, 1] where it is known."""

    fraction: float | None
    note: str | None


class PartOption(Reply):
    """One of several things that a part may ask for; the session's next message may say its number."""

    number: int
    capability: str
    description: str
    similarity: float


class PartHandoff(Reply):
    """A part that a person does; `answered_ms` is milliseconds since the epoch."""

    state: Literal["open", "answered"]
    answer: str | None
    answered_ms: int | None


class PartReply(Reply):
    """What became of one intent. `similarity` and `score` are in [0, 1].

    `options` are there for the status `clarify`, `handoff` for `handed_off`. What an event or the answer
    to a message tells of a handoff is how it began: ask for the request again to see what became of it.
    """

    intent: str
    capability: str | None
    agent_id: str | None
    status: Literal[
        "waiting",
        "open",
        "completed",
        "failed",
        "needs_input",
        "unavailable",
        "out_of_scope",
        "skipped",
        "cancelled",
        "outcome_unknown",
        "clarify",
        "handed_off",
    ]
    result: PartResult | None
    error: PartError | None
    similarity: float
    score: float | None
    attempts: int
    waited_ms: int | None
    elapsed_ms: int | None
    retry_after_s: int | None
    progress: PartProgress | None
    options: list[PartOption]
    handoff: PartHandoff | None


class RequestReply(Reply):
    """A request with its parts in the order asked; `answer` is null while it is open."""

    request_id: str
    status: Literal["open", "completed", "partial", "failed", "fallback", "cancelled"]
    answer: str | None
    parts: list[PartReply]


class AcceptedReply(Reply):
    """The request is kept and goes on; its `Location` tells more."""

    request_id: str
    status: Literal["open"]


class CandidateReply(Reply):
    """An agent that could take the intent; `rejection` is null for the chosen one only."""

    agent_id: str
    capability: str
    cosine: float
    similarity: float
    success: float
    headroom: float
    score: float
    rejection: str | None


class OptionReply(Reply):
    """One of the near capabilities that the person is asked about."""

    capability: str
    similarity: float


class ShadowReply(Reply):
    """What the calibration in shadow, by its number, would have made of the intent's text."""

    number: int
    outcome: Literal["selected", "out_of_scope", "unavailable", "clarify", "handed_off"]
    similarity: float
    scope_floor: float


class DecisionReply(Reply):
    """How one intent was routed. Capabilities not granted to the caller do not appear.

    `advice` names what a language model had a say in: `split` where its text begins and ends, `choice`
    which of near capabilities it asks for.
    """

    position: int
    number: int
    text: str
    outcome: Literal["selected", "out_of_scope", "unavailable", "clarify", "handed_off"]
    reason: str
    capability: str | None
    agent_id: str | None
    similarity: float | None
    score: float | None
    scope_score: float | None
    scope_floor: float
    candidates: list[CandidateReply]
    left_out: dict[str, int]
    weights: dict[str, float]
    encoder_id: str
    registry_version: int
    calibration: str
    retry_after_s: int | None
    elapsed_ms: float
    advice: list[str] = []
    options: list[OptionReply] = []
    shadow: ShadowReply | None = None


class DecisionsReply(Reply):
    """All decisions of a request, by intent and number."""

    request_id: str
    decisions: list[DecisionReply]


class IntentReply(Reply):
    """One thing the message asks for; `waits_for` are positions of intents whose results it uses."""

    position: int
    text: str
    capability: str | None
    confidence: float
    entities: list[dict[str, Any]]
    inputs: dict[str, JsonValue]
    missing: list[str]
    waits_for: list[int]


class PlanReply(Reply):
    """What was understood of a message."""

    language: str
    intents: list[IntentReply]


class DeliveryReply(Reply):
    """An attempt at the intent at `position` reached its agent's queue, or its agent already."""

    position: int
    attempt: int
    agent_id: str


class ProgressReply(PartProgress):
    """The progress of one attempt at the part of that position."""

    position: int
    attempt: int


class PartialReply(Reply):
    """A piece of a result on its way, by `sequence` from 0; another attempt begins anew.

    The result that follows holds all of it.
    """

    position: int
    attempt: int
    sequence: int
    result: PartResult


class ResultReply(PartReply):
    """What became of the intent at `position`."""

    position: int


class ExplanationReply(Reply):
    """What would happen to the message now; nothing was sent or stored."""

    language: str
    intents: list[IntentReply]
    decisions: list[DecisionReply]


class CapabilityRankReply(Reply):
    """A capability's place for one text; `declared` when it is the tried declaration's own.

    `score` decides the place; `similarity` is the calibrated probability, `cosine` the raw one.
    """

    capability: str
    score: float
    similarity: float
    cosine: float
    agents: dict[str, float]
    declared: bool


class TextRankingReply(Reply):
    """Where the declaration would rank for a text: `rank` from 1, null when not among the best."""

    text: str
    rank: int | None
    in_scope: bool
    scope_score: float
    scope_floor: float
    calibration: str
    capabilities: list[CapabilityRankReply]


class TrialReply(Reply):
    """One ranking for each text, in order."""

    rankings: list[TextRankingReply]


class AgentStatusReply(Reply):
    """Summed over the live instances; `load` is `running / capacity`, 1 without capacity."""

    liveness: Literal["alive", "suspect", "offline"]
    capacity: int
    running: int
    draining: bool
    load: float


class InstanceReply(Reply):
    """One running process of an agent; `age_s` since its last sign of life."""

    name: str
    instance_id: str
    inbox: Literal["memory", "sqlite", "postgres"]
    liveness: Literal["alive", "suspect", "offline"]
    draining: bool
    age_s: float
    running: int


class AgentReply(Reply):
    """An agent: what it declared and what was observed; `success` in [0, 1] per capability."""

    agent_id: str
    environment: str
    digest: str
    declaration: Declaration
    status: AgentStatusReply
    success: dict[str, float]
    instances: list[InstanceReply]


class AgentsReply(Reply):
    """Agents by id."""

    agents: list[AgentReply]


class HealthReply(Reply):
    """The process answers."""

    status: Literal["ok"]


class ReadyReply(Reply):
    """Every part by name; null means ready."""

    status: Literal["ready"]
    parts: dict[str, None]


class FieldProblem(Reply):
    """Where a body is wrong (JSON pointer; `*` stands for a name that was sent) and why."""

    pointer: str
    reason: str


EVENT_DATA: Mapping[str, type[Reply]] = {
    "accepted": AcceptedReply,
    "plan": PlanReply,
    "decision": DecisionReply,
    "delivery": DeliveryReply,
    "partial": PartialReply,
    "result": ResultReply,
    "answer": RequestReply,
    "progress": ProgressReply,
}
"""What each event of a stream carries."""


class Problem(BaseModel):
    """An error as RFC 9457 has it; `type` and `code` are stable, the texts are for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FieldProblem] | None = None
    fields: list[str] | None = None
    parts: dict[str, str] | None = None
    incident: str | None = None
