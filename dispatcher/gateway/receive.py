"""Reading a request's body within its limits."""

import asyncio

from starlette.requests import Request
from starlette.types import Scope

from dispatcher.errors import RequestError
from dispatcher.gateway.body import check_media_type, parse_document
from dispatcher.gateway.fields import header_value
from dispatcher.gateway.parts import GatewayRules

ARRIVED = "dispatcher.arrived"
"""ASGI extension: `scope["extensions"][ARRIVED]["body"](scope)` takes the body if all of it is here.

It returns None otherwise. Most bodies come with their headers; a message with a time limit costs more.
"""


async def receive_document(request: Request, rules: GatewayRules) -> dict[str, object]:
    """The JSON object in the body.

    Size and time are bounded before anything is parsed, with or without Content-Length; raises
    RequestError for these bounds and for all that `body` refuses.
    """
    return parse_document(await receive_bytes(request, rules.max_body_bytes, rules.body_timeout_s))


async def receive_bytes(request: Request, limit: int, timeout_s: float) -> bytes:
    """The JSON body, not parsed; raises RequestError for its media type, size and time."""
    check_media_type(header_value(request, "content-type"), header_value(request, "content-encoding"))
    body = _arrived(request.scope)
    if body is None:
        return await _receive_in_time(request, limit, timeout_s)
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _arrived(scope: Scope) -> bytes | None:
    arrived = scope.get("extensions", {}).get(ARRIVED)
    if arrived is None:
        return None
    body: bytes | None = arrived["body"](scope)
    return body


async def _receive_in_time(request: Request, limit: int, timeout_s: float) -> bytes:
    try:
        async with asyncio.timeout(timeout_s):
            return await _receive_bytes(request, limit)
    except TimeoutError:
        raise RequestError("The body was not complete in time.", code="body_timeout") from None


async def _receive_bytes(request: Request, limit: int) -> bytes:
    announced = header_value(request, "content-length") or ""
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for chunk in request.stream():
        if len(body) + len(chunk) > limit:
            raise _too_large(limit)
        body += chunk
    return bytes(body)


def _too_large(limit: int) -> RequestError:
    return RequestError(f"A body may have at most {limit} bytes.", code="body_too_large")
