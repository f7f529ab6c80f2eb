"""Messages as they come in over HTTP: taken literally, and checked."""

import unicodedata
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from dispatcher.dispatch.lifecycle.request import Match
from dispatcher.protocol.declaration import Name

_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def _visible(text: str) -> str:
    for character in text:
        if unicodedata.category(character) not in _INVISIBLE:
            return text
    raise PydanticCustomError("blank", "Must hold at least one visible character.")


VisibleText = Annotated[str, AfterValidator(_visible)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=128)]
_NAME: TypeAdapter[str] = TypeAdapter(Name)
Language = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$")]


class Body(BaseModel):
    """A body is taken literally: no unknown fields, no text for numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class RouteBody(Body):
    """A message to be understood. `context` fields fill the inputs of capabilities by name.

    `capability` skips understanding: the whole message becomes one intent for it. `match` says what it is:
    its name (`strict`), its name or an alias (`loose`), or a description (`semantic`), which a person gets
    where none fits well. `environment` None means the configured default; agents of other environments are
    never asked.
    """

    message: VisibleText
    session_id: Label | None = None
    user_id: Label | None = None
    language: Language | None = None
    context: dict[str, JsonValue] = {}
    match: Annotated[Match, Field(strict=False)] | None = None
    capability: Annotated[VisibleText, Field(max_length=1_000)] | None = None
    environment: Name | None = None

    @field_validator("capability")
    @classmethod
    def _is_a_name(cls, capability: str | None, info: ValidationInfo) -> str | None:
        if capability is not None and info.data.get("match") in {None, Match.STRICT}:
            return _NAME.validate_python(capability)
        return capability


class ChatBody(RouteBody):
    """A message to be answered; `wait_s` is how long the caller waits for the answer, in seconds."""

    wait_s: Annotated[float, Field(ge=0)] | None = None
