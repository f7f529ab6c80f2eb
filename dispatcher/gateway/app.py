"""The HTTP application, built from the parts it is given."""

from importlib.metadata import version

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dispatcher.clock import Clock, SystemClock
from dispatcher.errors import DispatcherError
from dispatcher.gateway.agents import AgentRoutes
from dispatcher.gateway.calibrations import CalibrationRoutes
from dispatcher.gateway.chat import ChatRoutes
from dispatcher.gateway.dead import DeadRoutes
from dispatcher.gateway.docs import DOCUMENT, DocsRoutes
from dispatcher.gateway.edge import Edge
from dispatcher.gateway.events import EventRoutes
from dispatcher.gateway.feedback import FeedbackRoutes
from dispatcher.gateway.handoffs import HandoffRoutes
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


class Application(DocumentedApp):
    """The framework's application, with one route that it documents and is not asked for."""

    def __init__(self, hot_route: APIRoute, clock: Clock, *, document: str | None) -> None:
        super().__init__(
            title=TITLE,
            version=version("agent-reach-dispatcher"),
            openapi_url=document,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self.add_middleware(Edge, clock=clock)
        self._hot_app = Edge(HotPath(hot_route), clock)
        self._hot_path = hot_route.path
        (self._hot_method,) = hot_route.methods or {"POST"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_hot = scope["type"] == "http" and scope["path"] == self._hot_path
        if is_hot and scope["method"] == self._hot_method:
            await self._hot_app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(parts: GatewayParts, clock: Clock | None = None) -> Application:
    """The application; it opens nothing and needs no start or stop of its own."""
    chat = ChatRoutes(parts)
    document = DOCUMENT if parts.rules.docs else None
    app = Application(chat.hot_route, clock or SystemClock(), document=document)
    app.add_exception_handler(DispatcherError, answer_dispatcher_error)
    app.add_exception_handler(HTTPException, answer_http_error)
    app.add_exception_handler(ClientDisconnect, answer_disconnect)
    for room in (chat, RequestRoutes(parts), FeedbackRoutes(parts), TrialRoutes(parts), AgentRoutes(parts)):
        app.include_router(room.router)
    app.include_router(RouteQueryRoutes(parts).router)
    app.include_router(AgentKeyRoutes(parts).router)
    app.include_router(EventRoutes(parts).router)
    app.include_router(ResultRoutes(parts).router)
    app.include_router(DeadRoutes(parts).router)
    app.include_router(CalibrationRoutes(parts).router)
    app.include_router(HandoffRoutes(parts).router)
    app.include_router(HealthRoutes(parts).router)
    if parts.rules.docs:
        app.include_router(DocsRoutes(TITLE).router)
    return app
