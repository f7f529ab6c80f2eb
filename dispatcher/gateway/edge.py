"""The outermost layer: one log line for each request, and the last answer to an unforeseen error."""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dispatcher.clock import Clock
from dispatcher.gateway.problem import incident_response

_log = logging.getLogger(__name__)


class Edge:
    """Logs method, route pattern, status and time; never the path sent, its query or a header."""

    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = self._clock.monotonic()
        status = 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception as error:
            response = incident_response(error)
            if status:
                raise
            await response(scope, receive, note_status)
        finally:
            _log.info("http.request", extra=_facts(scope, status, self._clock.monotonic() - started_at))


def _facts(scope: Scope, status: int, elapsed_s: float) -> dict[str, object]:
    route = scope.get("route")
    identity = scope.get("state", {}).get("identity")
    return {
        "method": scope["method"],
        "route": getattr(route, "path", "unmatched"),
        "status": status,
        "elapsed_ms": round(elapsed_s * 1000, 3),
        "subject": getattr(identity, "subject", None),
    }
