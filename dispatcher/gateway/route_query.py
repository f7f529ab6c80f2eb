"""For callers that dispatch themselves, and for agents that let them: candidates and keys."""

import re

from fastapi import APIRouter, Query, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import RequestError
from dispatcher.gateway.auth import Guard, check_agent, identity_of
from dispatcher.gateway.openapi import GUARDED, problems, sends
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.route_models import RouteListReply
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.direct import DirectKeys
from dispatcher.registry.access import Role

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SECRET = {"Cache-Control": "no-store"}


class RouteQueryRoutes:
    """`/v1/route/{capability}`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.CALLER, Role.ADMIN))
        self.router = APIRouter(tags=["chat"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/route/{capability}",
            self.get_candidates,
            methods=["GET"],
            responses={
                200: {
                    "model": RouteListReply,
                    "description": "The agents that would be considered now.",
                    **sends(*_SECRET),
                },
                **problems(*GUARDED, 404),
            },
        )

    async def get_candidates(
        self,
        request: Request,
        capability: str,
        environment: str | None = Query(None, description="As in a message; the default one without."),
    ) -> Response:
        """Who would take work of a capability now, with tickets for agents that may be called directly."""
        wanted = environment or self._parts.rules.default_environment
        found = None
        if _NAME.fullmatch(capability):
            found = await self._parts.ask_route(Capability(capability), wanted, identity_of(request))
        if found is None:
            raise RequestError("You have no capability of this name.", code="not_found")
        return json_response(found, headers=_SECRET)


class AgentKeyRoutes:
    """`/v1/agents/{agent_id}/direct-keys`: for the agent alone, not even for an admin."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.AGENT))
        self.router = APIRouter(tags=["agents"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/agents/{agent_id}/direct-keys",
            self.get_keys,
            methods=["GET"],
            responses={
                200: {
                    "model": DirectKeys,
                    "description": "The keys that replace those it had.",
                    **sends(*_SECRET),
                },
                **problems(*GUARDED, 404),
            },
        )

    async def get_keys(self, request: Request, agent_id: str) -> Response:
        """The keys under which the agent should accept tickets of callers from now on."""
        check_agent(identity_of(request), AgentId(agent_id))
        keys = await self._parts.agent_keys(AgentId(agent_id))
        if keys is None:
            raise RequestError("The agent is not registered, or allows no direct calls.", code="not_found")
        return json_response(keys, headers=_SECRET)
