"""Reading requests back and cancelling them; other callers' requests do not exist."""

import re

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import RequestError
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.models import DecisionsReply, RequestReply
from dispatcher.gateway.openapi import GUARDED, problems
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.view import records_view, request_view
from dispatcher.identifiers import RequestId
from dispatcher.registry.access import Role

_REQUEST_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RequestRoutes:
    """`/v1/requests/{request_id}` and what belongs to it."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self.router = APIRouter(
            tags=["requests"],
            dependencies=[Security(Guard(parts.access, Role.CALLER, Role.ADMIN))],
        )
        self.router.add_api_route(
            "/v1/requests/{request_id}",
            self.get_request,
            methods=["GET"],
            responses={
                200: {"model": RequestReply, "description": "The request as it stands."},
                **problems(*GUARDED, 404),
            },
        )
        self.router.add_api_route(
            "/v1/requests/{request_id}",
            self.delete_request,
            methods=["DELETE"],
            responses={
                200: {"model": RequestReply, "description": "The request as it stands now."},
                **problems(*GUARDED, 404),
            },
        )
        self.router.add_api_route(
            "/v1/requests/{request_id}/decisions",
            self.get_decisions,
            methods=["GET"],
            responses={
                200: {"model": DecisionsReply, "description": "Each decision with its candidates."},
                **problems(*GUARDED, 404),
            },
        )

    async def get_request(self, request: Request, request_id: str) -> Response:
        """How a request stands, with its parts so far."""
        state = await self._parts.dispatcher.read(known_form(request_id), identity_of(request))
        if state is None:
            raise unknown()
        return json_response(request_view(state, await self._parts.people.of(state)))

    async def delete_request(self, request: Request, request_id: str) -> Response:
        """Cancel a request: what runs is told to stop, what ended stays as it is; nothing is undone."""
        state = await self._parts.dispatcher.cancel(known_form(request_id), identity_of(request))
        if state is None:
            raise unknown()
        return json_response(request_view(state, await self._parts.people.of(state)))

    async def get_decisions(self, request: Request, request_id: str) -> Response:
        """Why each intent of a request went where it went."""
        identity = identity_of(request)
        records = await self._parts.dispatcher.decisions(known_form(request_id), identity)
        if records is None:
            raise unknown()
        return json_response({"request_id": request_id, "decisions": records_view(records, identity)})


def known_form(request_id: str) -> RequestId:
    """No other form was ever given out, so nothing else needs to be looked up."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise unknown()
    return RequestId(request_id)


def unknown() -> RequestError:
    """What is not there, or not the caller's own."""
    return RequestError("You have no request of this id.", code="not_found")
