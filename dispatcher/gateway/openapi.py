"""What the published OpenAPI document says beyond what FastAPI can see.

Endpoints read their bodies themselves (see `receive`), so their models are named here.
"""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dispatcher.gateway.bodies import ChatBody, RouteBody
from dispatcher.gateway.calibration_models import StateBody
from dispatcher.gateway.dead_models import RetryBody
from dispatcher.gateway.feedback_models import FeedbackBody
from dispatcher.gateway.handoff_models import AnswerBody
from dispatcher.gateway.headers import EVENTS
from dispatcher.gateway.models import EVENT_DATA, Problem, TrialBody
from dispatcher.gateway.problem import MEDIA_TYPE
from dispatcher.protocol.frames import (
    DrainFrame,
    HeartbeatFrame,
    PartialFrame,
    ProgressFrame,
    RegisterFrame,
    RenewFrame,
    ResultFrame,
    StartedFrame,
)

_REFERENCE = "#/components/schemas/{model}"
REPORTS = (ResultFrame, StartedFrame, ProgressFrame, PartialFrame, RenewFrame)
"""What an agent posts of a task."""
_BODIES = (
    ChatBody,
    RouteBody,
    TrialBody,
    RetryBody,
    StateBody,
    FeedbackBody,
    AnswerBody,
    RegisterFrame,
    HeartbeatFrame,
    DrainFrame,
    *REPORTS,
)
_PROBLEMS = {
    400: "A key in the query string.",
    401: "No key, or not a valid one.",
    403: "The key may not do that.",
    404: "Unknown, or not the key's own.",
    406: "It is a stream of events only.",
    408: "The body came too slowly.",
    409: "In conflict with what is registered.",
    413: "The body is too large.",
    415: "The body is not JSON in UTF-8.",
    422: "The body or a header can't be used; `errors` says where.",
    500: "An error here, logged as `incident`.",
    503: "Overloaded, shutting down, or a part is missing; see Retry-After.",
}
GUARDED = (400, 401, 403, 500, 503)
"""What every route behind a key can answer."""
READS_BODY = (408, 413, 415, 422)
"""What every route that reads a body can answer."""


_HEADERS = {
    "Location": "The request's address, to ask again.",
    "Idempotency-Replayed": "`true` when the key's first request is answered again.",
    "Preference-Applied": "`respond-async` when it was asked for.",
    "Cache-Control": "`no-cache` of a stream, `no-store` of secrets.",
    "X-Accel-Buffering": "`no`, of a stream: proxies pass it on at once.",
    "Retry-After": "Seconds after which another try makes sense.",
    "WWW-Authenticate": "How to send a key.",
}
_PROBLEM_HEADERS = {401: ("WWW-Authenticate",), 503: ("Retry-After",)}


def sends(*names: str) -> dict[str, Any]:
    """The documented headers of a response, none of them in every one."""
    headers = {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in names}
    return {"headers": headers} if headers else {}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented problem responses of a route."""
    schema = {"$ref": _REFERENCE.format(model=Problem.__name__)}
    return {
        status: {
            "description": _PROBLEMS[status],
            "content": {MEDIA_TYPE: {"schema": schema}},
            **sends(*_PROBLEM_HEADERS.get(status, ())),
        }
        for status in sorted(statuses)
    }


def takes(*models: type[BaseModel]) -> dict[str, Any]:
    """The documented request body of a route; of several frames, `type` says which one it is."""
    references = {model: _REFERENCE.format(model=model.__name__) for model in models}
    one_of = [{"$ref": reference} for reference in references.values()]
    mapping = {model.model_fields["type"].default: to for model, to in references.items() if one_of[1:]}
    discriminator = {"propertyName": "type", "mapping": mapping}
    schema = {"oneOf": one_of, "discriminator": discriminator} if mapping else one_of[0]
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def header(name: str, description: str) -> dict[str, Any]:
    """One documented optional request header."""
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": 256},
    }


KEY = header("Idempotency-Key", "1 to 128 visible ASCII characters, bare or quoted; yours alone.")
RESUMES = header(
    "Last-Event-ID", "The `id` of the last event that was received; the stream goes on after it."
)
"""What a stream can be resumed with."""


def streams(*names: str) -> dict[str, Any]:
    """The documented stream of events of a 200, sent with the named headers.

    `x-event-data` has the model of each event's data.
    """
    data = {name: {"$ref": _REFERENCE.format(model=model.__name__)} for name, model in EVENT_DATA.items()}
    content = {EVENTS: {"schema": {"type": "string"}, "x-event-data": data}}
    return {"content": content, **sends(*names, "Cache-Control", "X-Accel-Buffering")}


class DocumentedApp(FastAPI):
    """FastAPI with the bodies' and the problems' schemas in its document."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas.update(_schemas())
            for item in document["paths"].values():
                for operation in item.values():
                    _drop_foreign_errors(operation["responses"])
        return super().openapi()


def _drop_foreign_errors(responses: dict[str, Any]) -> None:
    """FastAPI announces its own 422 wherever a path has a parameter; ours are texts and always fit."""
    if "application/json" in responses.get("422", {}).get("content", {}):
        del responses["422"]


def _schemas() -> dict[str, Any]:
    _, bodies = models_json_schema([(model, "validation") for model in _BODIES], ref_template=_REFERENCE)
    definitions: dict[str, Any] = bodies["$defs"]
    for schema in definitions.values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    definitions["RegisterFrame"]["properties"].pop("key")
    replies: tuple[type[BaseModel], ...] = (Problem, *EVENT_DATA.values())
    _, others = models_json_schema([(model, "serialization") for model in replies], ref_template=_REFERENCE)
    return {**definitions, **others["$defs"]}
