"""The one route that is asked thousands of times a second, without the framework's way to it."""

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dispatcher.errors import DispatcherError
from dispatcher.gateway.problem import answer_disconnect, answer_dispatcher_error, answer_http_error


class HotPath:
    """Calls one route's handler at once where method and path are its own, and passes all else on.

    The framework documents the route and would answer alike; routing, exit stacks and wrappers on
    the way to it cost a fourth of what the handler itself does.
    """

    def __init__(self, app: ASGIApp, route: APIRoute) -> None:
        self._app = app
        self._route = route
        self._handle = route.get_route_handler()
        (self._method,) = route.methods or {"POST"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http" or (scope["method"], scope["path"]) != (self._method, self._route.path):
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route
        request = Request(scope, receive)
        try:
            response = await self._handle(request)
        except DispatcherError as error:
            response = await answer_dispatcher_error(request, error)
        except HTTPException as error:
            response = await answer_http_error(request, error)
        except ClientDisconnect as error:
            response = await answer_disconnect(request, error)
        await response(scope, receive, send)
