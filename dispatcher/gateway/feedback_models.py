"""Bodies and replies of feedback."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dispatcher.dispatch.lifecycle.judgement import Verdict
from dispatcher.gateway.bodies import Body
from dispatcher.gateway.models import Reply
from dispatcher.intents.plan import MAX_INTENTS
from dispatcher.protocol.declaration import Name


class JudgementBody(Body):
    """One intent's judgement; `position` counts the request's parts from 0."""

    position: Annotated[int, Field(ge=0, lt=MAX_INTENTS)] = 0
    verdict: Annotated[Verdict, Field(strict=False)]
    capability: Name | None = None
    comment: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _names_what_would_be_right(self) -> Self:
        if self.capability is not None and self.verdict is not Verdict.WRONG_CAPABILITY:
            raise PydanticCustomError("contradiction", "Goes with the verdict `wrong_capability` only.")
        return self


class FeedbackBody(Body):
    """Judgements of some or all parts of a request; a later one takes the place of an earlier one."""

    judgements: Annotated[list[JudgementBody], Field(min_length=1, max_length=MAX_INTENTS)]


class FeedbackReply(Reply):
    """How many judgements were stored."""

    request_id: str
    recorded: int
