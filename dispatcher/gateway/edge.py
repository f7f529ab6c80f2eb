"""The outermost layer: one log line for each request, and the last answer to an unforeseen error."""

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dispatcher.clock import Clock
from dispatcher.gateway.problem import incident_response
from dispatcher.gateway.whole import STATUS

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

        async def note_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope[STATUS] = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        except Exception as error:
            response = incident_response(error)
            if STATUS in scope:
                raise
            await response(scope, receive, note_status)
        finally:
            _log.info("http.request", extra=_facts(scope, self._clock.monotonic() - started_at))


def _facts(scope: Scope, elapsed_s: float) -> dict[str, object]:
    route = scope.get("route")
    identity = scope.get("state", {}).get("identity")
    return {
        "method": scope["method"],
        "route": getattr(route, "path", "unmatched"),
        "status": scope.get(STATUS, 0),
        "elapsed_ms": round(elapsed_s * 1000, 3),
        "subject": getattr(identity, "subject", None),
    }
