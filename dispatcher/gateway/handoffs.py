"""Parts that people do, for administrators: what waits for a person, and the person's answer."""

import re

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.dispatch.lifecycle.handoff import Handoff
from dispatcher.errors import RequestError
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.handoff_models import (
    TASK_ID,
    AnswerBody,
    HandoffFilter,
    HandoffReply,
    HandoffsReply,
    handoff_parameters,
)
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.validation import validate_document
from dispatcher.identifiers import TaskId
from dispatcher.records import asdict
from dispatcher.registry.access import Role

_TASK_ID = re.compile(TASK_ID)


class HandoffRoutes:
    """`/v1/handoffs` and what belongs to it."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.ADMIN))
        self.router = APIRouter(tags=["people"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/handoffs",
            self.get_all,
            methods=["GET"],
            responses={
                200: {
                    "model": HandoffsReply,
                    "description": "Open ones, the oldest first, or answered ones.",
                },
                **problems(*GUARDED, 422),
            },
            openapi_extra={"parameters": handoff_parameters()},
        )
        self.router.add_api_route(
            "/v1/handoffs/{task_id}/answer",
            self.post_answer,
            methods=["POST"],
            responses={
                200: {"model": HandoffReply, "description": "Kept; its caller sees it from now on."},
                **problems(*GUARDED, *READS_BODY, 404, 409),
            },
            openapi_extra=takes(AnswerBody),
        )

    async def get_all(self, request: Request) -> Response:
        """What waits for a person, or what people answered."""
        asked = validate_document(HandoffFilter, dict(request.query_params))
        after = None if asked.after is None else TaskId(asked.after)
        found = await self._parts.people.list(answered=asked.answered, limit=asked.limit + 1, after=after)
        shown = [_view(one) for one in found[: asked.limit]]
        return json_response({"handoffs": shown, "more": len(found) > asked.limit})

    async def post_answer(self, request: Request, task_id: str) -> Response:
        """Answer a part in an agent's place: once, and again only with the same words."""
        if not _TASK_ID.fullmatch(task_id):
            raise RequestError("Nothing of this id was handed over.", code="not_found")
        body = validate_document(AnswerBody, await receive_document(request, self._parts.rules))
        by = identity_of(request).subject
        return json_response(_view(await self._parts.people.answer(TaskId(task_id), body.answer, by)))


def _view(handoff: Handoff) -> dict[str, object]:
    return {**asdict(handoff), "state": handoff.state}
