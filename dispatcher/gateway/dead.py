"""Dead letters, for administrators: what did not work, and having it done again."""

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.dispatch.lifecycle.ledger import DeadQuery
from dispatcher.dispatch.lifecycle.request import RequestStatus
from dispatcher.gateway.auth import Guard
from dispatcher.gateway.dead_models import (
    DeadFilter,
    DeadLetterReply,
    DeadLettersReply,
    RetryBody,
    filter_parameters,
)
from dispatcher.gateway.fields import header_values
from dispatcher.gateway.headers import read_idempotency_key
from dispatcher.gateway.models import AcceptedReply
from dispatcher.gateway.openapi import GUARDED, KEY, READS_BODY, problems, sends, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.validation import validate_document
from dispatcher.gateway.view import dead_letter_view, dead_view
from dispatcher.identifiers import AgentId, Capability
from dispatcher.registry.access import Role


class DeadRoutes:
    """`/v1/dead` and what belongs to it."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.ADMIN))
        self.router = APIRouter(tags=["dead letters"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/dead",
            self.get_all,
            methods=["GET"],
            responses={
                200: {"model": DeadLettersReply, "description": "Newest first."},
                **problems(*GUARDED, 422),
            },
            openapi_extra={"parameters": filter_parameters()},
        )
        self.router.add_api_route(
            "/v1/dead/{dead_id}",
            self.get_one,
            methods=["GET"],
            responses={
                200: {"model": DeadLetterReply, "description": "The dead letter with its attempts."},
                **problems(*GUARDED, 404),
            },
        )
        self.router.add_api_route(
            "/v1/dead/{dead_id}/retry",
            self.post_retry,
            methods=["POST"],
            status_code=202,
            responses={
                202: {
                    "model": AcceptedReply,
                    "description": "A new request does it again.",
                    **sends("Location"),
                },
                **problems(*GUARDED, *READS_BODY, 404, 409),
            },
            openapi_extra={**takes(RetryBody), "parameters": [KEY]},
        )

    async def get_all(self, request: Request) -> Response:
        """Work that ended without success and frames that nobody can read, newest first."""
        asked = validate_document(DeadFilter, dict(request.query_params))
        wanted = DeadQuery(
            agent_id=AgentId(asked.agent_id) if asked.agent_id else None,
            capability=Capability(asked.capability) if asked.capability else None,
            retried=asked.retried,
            limit=asked.limit,
        )
        entries = await self._parts.dead.list(asked.cause, wanted)
        return json_response({"dead_letters": [dead_view(entry) for entry in entries]})

    async def get_one(self, dead_id: str) -> Response:
        """One dead letter with everything known of it."""
        letter = await self._parts.dead.show(dead_id)
        return json_response(dead_letter_view(letter.entry, letter.state))

    async def post_retry(self, request: Request, dead_id: str) -> Response:
        """Have a dead task done again, under its old idempotency key, for its old caller.

        Posted again with the same `Idempotency-Key` it answers with the same request.
        """
        document = await receive_document(request, self._parts.rules)
        body = validate_document(RetryBody, document)
        to = AgentId(body.agent_id) if body.agent_id else None
        key = read_idempotency_key(header_values(request, "idempotency-key"))
        request_id = await self._parts.dead.retry(dead_id, to, key)
        accepted = {"request_id": request_id, "status": RequestStatus.OPEN}
        return json_response(accepted, status=202, headers={"Location": f"/v1/requests/{request_id}"})
