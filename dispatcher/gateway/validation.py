"""From a parsed document to a model; what does not fit is named by place, never by content."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dispatcher.errors import RequestError

MAX_REPORTED = 20
"""Further errors of one body are not listed."""

MAX_COMPARED = 32
"""Longer unknown names are not compared with known ones."""

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One thing wrong with a body. `pointer` is a JSON pointer (RFC 6901), `*` stands for sent names."""

    pointer: str
    reason: str


class InvalidBodyError(RequestError):
    """The body is JSON but not what the route takes; `errors` says where and why."""

    code = "invalid_body"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("The body does not fit; `errors` says where.")
        self.errors = tuple(errors)


def validate_document(model: type[ModelT], document: dict[str, object]) -> ModelT:
    """The document as `model`, unknown fields refused at every level whatever the model says.

    Raises InvalidBodyError.
    """
    try:
        return model.model_validate(document, extra="forbid")
    except ValidationError as refusal:
        details = refusal.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidBodyError([_describe(d, model) for d in details[:MAX_REPORTED]]) from None


def refuse_field(pointer: str, reason: str) -> InvalidBodyError:
    """The error for one field that no model can judge."""
    return InvalidBodyError([FieldError(pointer=pointer, reason=reason)])


def _describe(detail: ErrorDetails, model: type[BaseModel]) -> FieldError:
    known = _field_names(model)
    steps = [str(step) if isinstance(step, int) or step in known else "*" for step in detail["loc"]]
    reason = detail["msg"]
    if detail["type"] == "extra_forbidden":
        steps[-1] = "*"
        reason = "This field is not known here" + _suggestion(str(detail["loc"][-1]), known)
    return FieldError(pointer="".join(f"/{step}" for step in steps), reason=reason)


def _suggestion(name: str, known: frozenset[str]) -> str:
    """Helps with typing errors in our words only; comparing is quadratic, so long names are not."""
    near = get_close_matches(name, sorted(known), n=1) if len(name) <= MAX_COMPARED else []
    return f"; did you mean `{near[0]}`?" if near else "."


@cache
def _field_names(model: type[BaseModel]) -> frozenset[str]:
    """Names that the model itself uses: showing one repeats nothing the sender made up."""
    return frozenset(_property_names(model.model_json_schema()))


def _property_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for inner in schema.values():
            yield from _property_names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _property_names(inner)
