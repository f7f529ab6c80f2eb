"""Taking messages: answer them, or explain what would be done with them."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import APIRouter, Security
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.dispatch.lifecycle.request import ChatMessage, Match, RequestState
from dispatcher.errors import OverloadedError, UnavailableError
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.bodies import ChatBody, RouteBody
from dispatcher.gateway.body import digest_document
from dispatcher.gateway.door import Door
from dispatcher.gateway.events import stream_submitted
from dispatcher.gateway.fields import header_values
from dispatcher.gateway.headers import prefers_async, prefers_events, read_idempotency_key
from dispatcher.gateway.models import AcceptedReply, ExplanationReply, RequestReply
from dispatcher.gateway.openapi import (
    GUARDED,
    KEY,
    READS_BODY,
    RESUMES,
    header,
    problems,
    sends,
    streams,
    takes,
)
from dispatcher.gateway.parts import GatewayParts, Submitted
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.submission import submission_reply
from dispatcher.gateway.validation import refuse_field, validate_document
from dispatcher.gateway.view import explanation_view
from dispatcher.identifiers import Capability
from dispatcher.registry.access import Role

_HEADERS = [
    KEY,
    header("Prefer", "`respond-async`: answer 202 as soon as the request is kept."),
    RESUMES,
]
_SENT = ("Location", "Idempotency-Replayed", "Preference-Applied")


class HotRoute(APIRoute):
    """A route that FastAPI documents and calls without solving anything: 60 % less work a request.

    Its dependencies must take the request alone; they run first, in order.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint behind its dependencies."""
        guards: list[Callable[[Request], Awaitable[object]]] = [
            dependency.dependency for dependency in self.dependencies if dependency.dependency is not None
        ]
        endpoint = self.endpoint

        async def handle(request: Request) -> Response:
            for guard in guards:
                await guard(request)
            response: Response = await endpoint(request)
            return response

        return handle


class ChatRoutes:
    """`/v1/chat` and `/v1/route`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._door = Door(parts.rules.max_arriving)
        guard = Security(Guard(parts.access, Role.CALLER, Role.ADMIN))
        self.router = APIRouter(tags=["chat"], dependencies=[guard], route_class=HotRoute)
        self.router.add_api_route(
            "/v1/chat",
            self.post_chat,
            methods=["POST"],
            responses={
                200: {
                    "model": RequestReply,
                    "description": "The request has ended; or its events, up to that.",
                    **streams(*_SENT),
                },
                202: {"model": AcceptedReply, "description": "The request goes on.", **sends(*_SENT)},
                **problems(*GUARDED, *READS_BODY),
            },
            openapi_extra={**takes(ChatBody), "parameters": _HEADERS},
        )
        self.router.add_api_route(
            "/v1/route",
            self.post_route,
            methods=["POST"],
            responses={
                200: {"model": ExplanationReply, "description": "The plan and its decisions."},
                **problems(*GUARDED, *READS_BODY),
            },
            openapi_extra=takes(RouteBody),
        )

    @property
    def hot_route(self) -> APIRoute:
        """The route of `post_chat`."""
        return next(one for one in self.router.routes if isinstance(one, HotRoute) and one.path == "/v1/chat")

    async def post_chat(self, request: Request) -> Response:
        """Answer a message, or keep it and say where the answer will be."""
        if self._parts.stopping():
            raise OverloadedError("This replica is shutting down; ask another one.", code="stopping")
        with self._door.entering():
            key = read_idempotency_key(header_values(request, "idempotency-key"))
            document = await receive_document(request, self._parts.rules)
            body = validate_document(ChatBody, document)
            wait_s = self._wait_s(body)
            # Compared where a key comes again; without one nobody asks for it.
            digest = "" if key is None else digest_document(document)
            message = self._message(body, key, digest)
            identity, submit = identity_of(request), self._parts.dispatcher.submit
            if prefers_events(header_values(request, "accept")):
                return stream_submitted(self._parts, request, partial(submit, message, identity, waits=False))
            waits = not prefers_async(header_values(request, "prefer"))
            submitted = await submit(message, identity, waits=waits)
        if waits:
            return submission_reply(submitted, await self._wait(submitted, wait_s))
        state = await self._wait(submitted, 0) if submitted.replayed else None
        response = submission_reply(submitted, state)
        response.headers["Preference-Applied"] = "respond-async"
        return response

    async def post_route(self, request: Request) -> Response:
        """Explain how a message would be understood and routed, without sending it."""
        document = await receive_document(request, self._parts.rules)
        message = self._message(validate_document(RouteBody, document), None, "")
        identity = identity_of(request)
        explanation = await self._parts.dispatcher.explain(message, identity)
        return json_response(explanation_view(explanation, identity))

    def _wait_s(self, body: ChatBody) -> float:
        rules = self._parts.rules
        if body.wait_s is None:
            return rules.default_wait_s
        if body.wait_s > rules.max_wait_s:
            raise refuse_field("/wait_s", f"Must be at most {rules.max_wait_s:g}.")
        return body.wait_s

    async def _wait(self, submitted: Submitted, seconds: float) -> RequestState | None:
        """None when nothing is known now: what was accepted stays accepted, whatever fails after it."""
        try:
            return await self._parts.dispatcher.wait(submitted.request_id, seconds)
        except (UnavailableError, OverloadedError):
            return None

    def _message(self, body: RouteBody, key: str | None, digest: str) -> ChatMessage:
        named, wanted = body.capability, None
        if body.match is not None:
            if named is None:
                raise refuse_field("/match", "Goes with `capability`.")
            if body.match is not Match.STRICT:
                named, wanted = None, body.capability
        return ChatMessage(
            message=body.message,
            environment=body.environment or self._parts.rules.default_environment,
            session_id=body.session_id,
            user_id=body.user_id,
            language=body.language.split("-")[0].lower() if body.language else None,
            context=body.context,
            capability=Capability(named) if named else None,
            match=body.match or Match.STRICT,
            wanted=wanted,
            idempotency_key=key,
            body_digest=digest,
        )
