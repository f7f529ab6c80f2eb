"""Bodies and replies about dead letters."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dispatcher.dispatch.lifecycle.dead_letter import Cause
from dispatcher.gateway.models import Reply
from dispatcher.protocol.declaration import Name


class DeadFilter(BaseModel):
    """Which dead letters to list; all are optional. `retried` false leaves out what was retried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cause: Cause | None = None
    agent_id: Name | None = None
    capability: Name | None = None
    retried: bool = True
    limit: Annotated[int, Field(ge=1, le=500)] = 50


def filter_parameters() -> list[dict[str, Any]]:
    """The filter as OpenAPI query parameters."""
    document = DeadFilter.model_json_schema()
    names = document["properties"]
    causes = {"type": "string", "enum": [str(cause) for cause in Cause]}
    return [
        {"name": name, "in": "query", "required": False, "schema": causes if name == "cause" else schema}
        for name, schema in names.items()
    ]


class RetryBody(BaseModel):
    """Have a dead task done again; `agent_id` gets the first attempt, if it is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_id: Name | None = None


class DeadReply(Reply):
    """A dead letter: a task by its id, or a frame that belongs to none (`source`, no `request_id`).

    `ended_ms` is milliseconds since the epoch. `retried_as` is the newest request that repeats it.
    """

    dead_id: str
    cause: Literal["poison", "exhausted", "expired", "unauthorised", "agent_error"]
    error_code: str | None
    ended_ms: int
    caller: str | None
    request_id: str | None
    capability: str | None
    agent_id: str | None
    status: str | None
    attempts: int
    retries: int
    retried_as: str | None
    source: str | None
    size_bytes: int | None


class DeadLettersReply(Reply):
    """Dead letters, newest first."""

    dead_letters: list[DeadReply]


class DeadAttemptReply(Reply):
    """One attempt at a dead task; times in milliseconds since the epoch."""

    number: int
    agent_id: str
    status: str
    error_code: str | None
    published_ms: int | None
    started_ms: int | None
    finished_ms: int | None


class DeadLetterReply(DeadReply):
    """A dead letter with the words and inputs of its task, or the body of its frame."""

    text: str | None
    inputs: dict[str, JsonValue]
    tried: list[DeadAttemptReply]
    body: str | None
