"""The frame that tells people of a part that is theirs; on the queue `people` of the topology.

Whoever consumes that queue acknowledges a frame once it is safe with them, and later answers over HTTP:
`POST /v1/handoffs/{task_id}/answer`. A frame may come twice, under the same `task_id`, which is the
AMQP message id too.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dispatcher.protocol.declaration import Name
from dispatcher.protocol.frames import Frame, Identifier


class NearCapability(BaseModel):
    """A capability that came near without being near enough; `similarity` is calibrated, in [0, 1]."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    capability: Name
    similarity: Annotated[float, Field(ge=0, le=1)]


class HandoffFrame(Frame):
    """A part of a request for a person.

    `text` is the part's own words, `message` the whole of what was posted, `described` what its caller asked
    for in free words, null where that is not more than `text`. `context` is what its caller sent along, over
    what its session remembered. `reason` says why no agent has it, `near` which capabilities came nearest.
    """

    type: Literal["handoff"] = "handoff"
    request_id: Identifier
    task_id: Identifier
    caller: str
    text: str
    described: str | None = None
    message: str
    language: str
    environment: str
    session_id: str | None = None
    user_id: str | None = None
    context: dict[str, JsonValue] = Field(default_factory=dict)
    entities: list[dict[str, JsonValue]] = Field(default_factory=list)
    reason: str
    near: list[NearCapability] = Field(default_factory=list)


def handoff_schema() -> dict[str, Any]:
    """The JSON Schema that is published of it."""
    return HandoffFrame.model_json_schema()
