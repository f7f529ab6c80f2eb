"""JSON responses, straight from the dispatcher's own values."""

from collections.abc import Mapping, Set

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from dispatcher.gateway.whole import WholeResponse


def encode(content: object) -> bytes:
    """JSON of dataclasses, models, enums, mappings and sets (sorted); NaN becomes null."""
    return orjson.dumps(content, default=_plain)


def json_response(
    content: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A response with `content` as its JSON body."""
    return WholeResponse(encode(content), status, headers)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    raise TypeError(type(value).__name__)
