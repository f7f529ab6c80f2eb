"""Bodies and replies about parts that people do."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dispatcher.gateway.bodies import Body, VisibleText
from dispatcher.gateway.models import Reply

TASK_ID = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[0-9]{1,3}$"


class HandoffFilter(BaseModel):
    """Which parts to list: open ones, the oldest first, or answered ones, the latest answer first.

    `after` is the last `task_id` of the list before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answered: bool = False
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    after: Annotated[str | None, Field(pattern=TASK_ID)] = None


def handoff_parameters() -> list[dict[str, Any]]:
    """The filter as OpenAPI query parameters."""
    properties = HandoffFilter.model_json_schema()["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in properties.items()
    ]


class AnswerBody(Body):
    """What a person says to a part, for its caller."""

    answer: Annotated[VisibleText, Field(max_length=16_000)]


class HandoffReply(Reply):
    """A part that a person does; times in milliseconds since the epoch.

    `described` is what its caller asked for in free words (`match: semantic`), null where that is not more
    than `text`. `published_ms` is when the broker had its frame, null for ever where there is no broker;
    `publish_error` is why it can't have it, then the list alone tells of the part.
    """

    task_id: str
    request_id: str
    caller: str
    text: str
    described: str | None
    language: str
    environment: str
    state: Literal["open", "answered"]
    handed_ms: int
    published_ms: int | None
    publish_error: str | None
    answer: str | None
    answered_by: str | None
    answered_ms: int | None


class HandoffsReply(Reply):
    """Parts that people do; `more` says that there are others behind the last one."""

    handoffs: list[HandoffReply]
    more: bool
