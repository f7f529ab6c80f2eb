"""The HTTP application, built from the parts it is given."""

from importlib.metadata import version

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DispatcherError
from dispatcher.gateway.agents import AgentRoutes
from dispatcher.gateway.chat import ChatRoutes
from dispatcher.gateway.dead import DeadRoutes
from dispatcher.gateway.docs import DOCUMENT, DocsRoutes
from dispatcher.gateway.edge import Edge
from dispatcher.gateway.events import EventRoutes
from dispatcher.gateway.health import HealthRoutes
from dispatcher.gateway.hot import HotPath
from dispatcher.gateway.openapi import DocumentedApp
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.problem import answer_disconnect, answer_dispatcher_error, answer_http_error
from dispatcher.gateway.requests import RequestRoutes
from dispatcher.gateway.results import ResultRoutes
from dispatcher.gateway.route_query import AgentKeyRoutes, RouteQueryRoutes
from dispatcher.gateway.trial import TrialRoutes

TITLE = "Agent-Reach Dispatcher"
Application = FastAPI
"""What rooms that don't know the web framework call it."""


def create_app(parts: GatewayParts, clock: Clock | None = None) -> FastAPI:
    """The application; it opens nothing and needs no start or stop of its own."""
    app = DocumentedApp(
        title=TITLE,
        version=version("agent-reach-dispatcher"),
        openapi_url=DOCUMENT if parts.rules.docs else None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    chat = ChatRoutes(parts)
    app.add_middleware(HotPath, route=chat.hot_route)
    app.add_middleware(Edge, clock=clock or SystemClock())
    app.add_exception_handler(DispatcherError, answer_dispatcher_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(ClientDisconnect, answer_disconnect)
    for room in (chat, RequestRoutes(parts), TrialRoutes(parts), AgentRoutes(parts)):
        app.include_router(room.router)
    app.include_router(RouteQueryRoutes(parts).router)
    app.include_router(AgentKeyRoutes(parts).router)
    app.include_router(EventRoutes(parts).router)
    app.include_router(ResultRoutes(parts).router)
    app.include_router(DeadRoutes(parts).router)
    app.include_router(HealthRoutes(parts).router)
    if parts.rules.docs:
        app.include_router(DocsRoutes(TITLE).router)
    return app
