"""Every error as a problem response (RFC 9457), from one table.

A problem never repeats what was sent, never shows a stack, and its `type` and `code` are stable.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import (
    DeliveryError,
    DispatcherError,
    OverloadedError,
    RegistrationError,
    RequestError,
    TooLargeError,
    UnavailableError,
)
from dispatcher.gateway.validation import InvalidBodyError
from dispatcher.gateway.whole import WholeResponse
from dispatcher.identifiers import new_id

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:agent-reach-dispatcher:problem:"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all problems of one code have in common."""

    status: int
    title: str


BY_CODE: Mapping[str, Kind] = {
    "key_in_query": Kind(status=400, title="Keys belong in the Authorization header"),
    "invalid_event_id": Kind(status=400, title="There is no such event"),
    "unauthenticated": Kind(status=401, title="A valid key is needed"),
    "forbidden": Kind(status=403, title="This key may not do that"),
    "capability_not_granted": Kind(status=403, title="The capability is not granted"),
    "result_refused": Kind(status=403, title="The token does not fit"),
    "not_found": Kind(status=404, title="There is nothing here"),
    "unknown_agent": Kind(status=404, title="There is no such agent"),
    "method_not_allowed": Kind(status=405, title="The method is not allowed here"),
    "not_acceptable": Kind(status=406, title="This is a stream of events"),
    "body_timeout": Kind(status=408, title="The body came too slowly"),
    "private_inbox": Kind(status=409, title="The agent's inbox allows one instance only"),
    "memory_inbox_not_idempotent": Kind(
        status=409, title="A memory inbox needs capabilities that may run twice"
    ),
    "incompatible_schema": Kind(status=409, title="The capability has another schema"),
    "instance_id_taken": Kind(status=409, title="Another instance has this id"),
    "queue_mismatch": Kind(status=409, title="The agent's queue exists with other arguments"),
    "lease_superseded": Kind(status=409, title="The lease belongs to a newer instance"),
    "other_encoder": Kind(status=409, title="The calibration belongs to another encoder"),
    "other_contrast": Kind(status=409, title="The calibration belongs to another version"),
    "not_readable": Kind(status=409, title="Another version's calibration can't be read"),
    "not_retryable": Kind(status=409, title="Nobody knows what this belongs to"),
    "already_retried": Kind(status=409, title="It was retried before"),
    "may_have_run": Kind(status=409, title="Only the agent that had it may get it again"),
    "caller_not_granted": Kind(status=409, title="Its caller may not use the capability any more"),
    "already_answered": Kind(status=409, title="It was answered otherwise before"),
    "agent_unavailable": Kind(status=409, title="No agent that may get it can take it now"),
    "body_too_large": Kind(status=413, title="The body is too large"),
    "unsupported_media_type": Kind(status=415, title="The body must be JSON in UTF-8"),
    "text_refused": Kind(status=422, title="The encoder does not take such a text"),
    "stopping": Kind(status=503, title="This replica is shutting down"),
    "not_ready": Kind(status=503, title="A part is not ready"),
}
"""Codes with a status of their own; all others take that of their error's class."""

BY_CLASS: Mapping[type[DispatcherError], Kind] = {
    RequestError: Kind(status=422, title="The request can't be used"),
    RegistrationError: Kind(status=422, title="The registration was refused"),
    TooLargeError: Kind(status=413, title="The task is too large"),
    DeliveryError: Kind(status=503, title="The task could not be handed over"),
    OverloadedError: Kind(status=503, title="Too much work right now"),
    UnavailableError: Kind(status=503, title="A part can't be reached"),
    DispatcherError: Kind(status=500, title="Something went wrong here"),
}


def kind_of(error: DispatcherError) -> Kind:
    """The error's row: by its code, else by the nearest class above it."""
    by_class = next(BY_CLASS[cls] for cls in type(error).__mro__ if cls in BY_CLASS)
    return BY_CODE.get(error.error_code, by_class)


def problem_response(
    kind: Kind,
    code: str,
    detail: str,
    *,
    members: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response with the standard members, and `members` beside them."""
    content = {
        "type": TYPE_PREFIX + code,
        "title": kind.title,
        "status": kind.status,
        "code": code,
        "detail": detail,
        **(members or {}),
    }
    return WholeResponse(orjson.dumps(content), kind.status, headers, media_type=MEDIA_TYPE)


def incident_response(error: BaseException) -> Response:
    """A 500 that says nothing but the id under which the error was logged."""
    incident = new_id()
    _log.error("http.internal_error", exc_info=error, extra={"incident": incident})
    detail = f"The error was logged as incident {incident}."
    kind = BY_CLASS[DispatcherError]
    return problem_response(kind, DispatcherError.code, detail, members={"incident": incident})


async def answer_dispatcher_error(_: Request, error: Exception) -> Response:
    """Handler for every error raised on purpose."""
    if not isinstance(error, DispatcherError):
        raise TypeError(type(error).__name__)
    kind = kind_of(error)
    if kind.status == 500:
        return incident_response(error)
    return problem_response(
        kind, error.error_code, _safe_detail(error), members=_members(error), headers=_headers(kind, error)
    )


async def answer_http_error(_: Request, error: Exception) -> Response:
    """Handler for what the router itself refuses: 404, 405."""
    if not isinstance(error, HTTPException):
        raise TypeError(type(error).__name__)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    kind = BY_CODE.get(code, Kind(status=error.status_code, title="The request was refused"))
    return problem_response(kind, code, f"{kind.title}.", headers=error.headers)


async def answer_disconnect(_: Request, __: Exception) -> Response:
    """Handler for a client that went away while sending: nobody reads this response."""
    return Response(status_code=400)


def _safe_detail(error: DispatcherError) -> str:
    """The message, except where it may name hosts or drivers."""
    if isinstance(error, UnavailableError | DeliveryError):
        _log.warning("http.unavailable", extra={"code": error.error_code, "reason": error.message})
        return "A part that the dispatcher depends on can't be reached right now."
    return error.message


def _members(error: DispatcherError) -> dict[str, object]:
    if isinstance(error, InvalidBodyError):
        return {"errors": [asdict(e) for e in error.errors]}
    if isinstance(error, RegistrationError) and error.fields:
        return {"fields": list(error.fields)}
    return {}


def _headers(kind: Kind, error: DispatcherError) -> dict[str, str]:
    if kind.status == 401:
        return {"WWW-Authenticate": 'Bearer realm="dispatcher"'}
    if isinstance(error, OverloadedError):
        return {"Retry-After": str(error.retry_after_s)}
    return {"Retry-After": "1"} if kind.status == 503 else {}
