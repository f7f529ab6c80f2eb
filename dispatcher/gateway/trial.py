"""Trying a declaration before it is registered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import OverloadedError
from dispatcher.gateway.auth import Guard, check_agent, identity_of
from dispatcher.gateway.models import TrialBody, TrialReply
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.validation import validate_document
from dispatcher.gateway.view import trial_view
from dispatcher.identifiers import AgentId
from dispatcher.registry.access import Identity, Role

NEW_AGENT = AgentId("new-agent")
WAITING = 4
"""Trials that wait for the one being made; each fits the whole registry anew."""


class Turns:
    """One trial at a time, `WAITING` behind it; the next raises OverloadedError (`too_many_trials`)."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._inside = 0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for the turn and have it until the block is left."""
        if self._inside > WAITING:
            raise OverloadedError("Too many declarations are tried at once.", code="too_many_trials")
        self._inside += 1
        try:
            async with self._turn:
                yield
        finally:
            self._inside -= 1


class TrialRoutes:
    """`/v1/agents/try`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._turns = Turns()
        guard = Security(Guard(parts.access, Role.AGENT, Role.ADMIN))
        self.router = APIRouter(tags=["agents"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/agents/try",
            self.post_trial,
            methods=["POST"],
            responses={
                200: {"model": TrialReply, "description": "Where it would rank, and against whom."},
                **problems(*GUARDED, *READS_BODY),
            },
            openapi_extra=takes(TrialBody),
        )

    async def post_trial(self, request: Request) -> Response:
        """Show where a declaration would rank for some texts; nothing is registered."""
        document = await receive_document(request, self._parts.rules)
        body = validate_document(TrialBody, document)
        agent_id = _tried_agent(body, identity_of(request))
        async with self._turns.taken():
            rankings = await self._parts.trial(agent_id, body.declaration, body.texts)
        declared = frozenset(capability.name for capability in body.declaration.capabilities)
        return json_response(trial_view(rankings, declared))


def _tried_agent(body: TrialBody, identity: Identity) -> AgentId:
    if body.agent_id is not None:
        check_agent(identity, AgentId(body.agent_id))
        return AgentId(body.agent_id)
    return AgentId(identity.subject) if identity.role is Role.AGENT else NEW_AGENT
