"""Reading a request's body within its limits."""

import asyncio

from starlette.requests import Request

from dispatcher.errors import RequestError
from dispatcher.gateway.body import check_media_type, parse_document
from dispatcher.gateway.parts import GatewayRules


async def receive_document(request: Request, rules: GatewayRules) -> dict[str, object]:
    """The JSON object in the body.

    Size and time are bounded before anything is parsed, with or without Content-Length; raises
    RequestError for these bounds and for all that `body` refuses.
    """
    return parse_document(await receive_bytes(request, rules.max_body_bytes, rules.body_timeout_s))


async def receive_bytes(request: Request, limit: int, timeout_s: float) -> bytes:
    """The JSON body, not parsed; raises RequestError for its media type, size and time."""
    check_media_type(request.headers.get("content-type"), request.headers.get("content-encoding"))
    try:
        async with asyncio.timeout(timeout_s):
            return await _receive_bytes(request, limit)
    except TimeoutError:
        raise RequestError("The body was not complete in time.", code="body_timeout") from None


async def _receive_bytes(request: Request, limit: int) -> bytes:
    announced = request.headers.get("content-length", "")
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
