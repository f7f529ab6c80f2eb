"""`POST /v1/requests/{request_id}/feedback`: whether the right one was asked."""

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.dispatch.lifecycle.judgement import Judgement
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.feedback_models import FeedbackBody, FeedbackReply
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.requests import known_form, unknown
from dispatcher.gateway.validation import validate_document
from dispatcher.identifiers import Capability
from dispatcher.registry.access import Role


class FeedbackRoutes:
    """What people say about routing; it is stored, and used by `dispatcher fit` and `dispatcher eval`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.CALLER, Role.ADMIN))
        self.router = APIRouter(tags=["requests"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/requests/{request_id}/feedback",
            self.post_feedback,
            methods=["POST"],
            responses={
                200: {"model": FeedbackReply, "description": "Stored."},
                **problems(*GUARDED, *READS_BODY, 404),
            },
            openapi_extra=takes(FeedbackBody),
        )

    async def post_feedback(self, request: Request, request_id: str) -> Response:
        """Say of each part whether the right agent was asked, or which capability would have been right."""
        body = validate_document(FeedbackBody, await receive_document(request, self._parts.rules))
        identity = identity_of(request)
        state = await self._parts.dispatcher.read(known_form(request_id), identity)
        if state is None:
            raise unknown()
        judgements = [
            Judgement(
                position=one.position,
                verdict=one.verdict,
                capability=Capability(one.capability) if one.capability else None,
                comment=one.comment,
            )
            for one in body.judgements
        ]
        await self._parts.judge(state, judgements, identity)
        return json_response({"request_id": request_id, "recorded": len(judgements)})
