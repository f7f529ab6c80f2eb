"""Registering agents and keeping them registered; bodies are frames of the agent protocol."""

import re
from ipaddress import ip_address
from typing import Any

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from dispatcher.errors import RegistrationError, RequestError
from dispatcher.gateway.auth import Guard, check_agent, identity_of
from dispatcher.gateway.models import AgentReply, AgentsReply
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.validation import ModelT, refuse_field, validate_document
from dispatcher.gateway.view import agent_view, agents_view
from dispatcher.identifiers import AgentId, LeaseId
from dispatcher.protocol.frames import DrainFrame, HeartbeatFrame, RegisteredFrame, RegisterFrame
from dispatcher.registry.access import Role

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LEASE = re.compile(r"[!-~]{1,128}")
_GONE: dict[int | str, dict[str, Any]] = {204: {"description": "Done."}}


class AgentRoutes:
    """`/v1/agents` and below. An agent's key acts for that agent only, an admin's for all."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.AGENT, Role.ADMIN))
        self.router = APIRouter(tags=["agents"], dependencies=[guard])
        self._add_registration()
        self._add_reading()
        self._add_leaving()

    def _add_registration(self) -> None:
        self.router.add_api_route(
            "/v1/agents",
            self.post_agent,
            methods=["POST"],
            responses={
                200: {"model": RegisteredFrame, "description": "A lease for a known agent."},
                201: {"model": RegisteredFrame, "description": "A lease for a new agent."},
                **problems(*GUARDED, *READS_BODY, 409),
            },
            openapi_extra=takes(RegisterFrame),
        )
        self.router.add_api_route(
            "/v1/agents/{agent_id}/heartbeat",
            self.post_heartbeat,
            methods=["POST"],
            status_code=204,
            responses={**_GONE, **problems(*GUARDED, *READS_BODY, 404, 409)},
            openapi_extra=takes(HeartbeatFrame),
        )

    def _add_reading(self) -> None:
        self.router.add_api_route(
            "/v1/agents",
            self.get_agents,
            methods=["GET"],
            responses={
                200: {"model": AgentsReply, "description": "Every agent that the key may see."},
                **problems(*GUARDED),
            },
        )
        self.router.add_api_route(
            "/v1/agents/{agent_id}",
            self.get_agent,
            methods=["GET"],
            responses={
                200: {"model": AgentReply, "description": "What it declared and what was observed."},
                **problems(*GUARDED, 404),
            },
        )

    def _add_leaving(self) -> None:
        gone = {**_GONE, **problems(*GUARDED, 404, 409)}
        self.router.add_api_route(
            "/v1/agents/{agent_id}/drain",
            self.post_drain,
            methods=["POST"],
            status_code=204,
            responses={**gone, **problems(*READS_BODY)},
            openapi_extra=takes(DrainFrame),
        )
        self.router.add_api_route(
            "/v1/agents/{agent_id}/leases/{lease_id}",
            self.delete_lease,
            methods=["DELETE"],
            status_code=204,
            responses=gone,
        )
        self.router.add_api_route(
            "/v1/agents/{agent_id}",
            self.delete_agent,
            methods=["DELETE"],
            status_code=204,
            responses=gone,
        )

    async def post_agent(self, request: Request) -> Response:
        """Register an instance and give it a lease."""
        document = await receive_document(request, self._parts.rules)
        if "key" in document:
            raise refuse_field("/key", "Over HTTP the key travels in the Authorization header only.")
        frame = validate_document(RegisterFrame, document)
        agent_id = AgentId(frame.agent_id)
        check_agent(identity_of(request), agent_id)
        is_known = self._parts.registrar.describe_one(agent_id) is not None
        registered = await self._parts.registrar.register(frame, client=_other_host(request.scope))
        return json_response(registered, status=200 if is_known else 201)

    async def post_heartbeat(self, request: Request, agent_id: str) -> Response:
        """Say that an instance is alive, and how busy it is."""
        frame = await self._receive_frame(request, agent_id, HeartbeatFrame)
        await self._parts.registrar.heartbeat_checked(frame)
        return Response(status_code=204)

    async def post_drain(self, request: Request, agent_id: str) -> Response:
        """Give an instance no new work; it finishes what it has."""
        frame = await self._receive_frame(request, agent_id, DrainFrame)
        await self._parts.registrar.drain(AgentId(frame.agent_id), LeaseId(frame.lease_id))
        return Response(status_code=204)

    async def delete_lease(self, request: Request, agent_id: str, lease_id: str) -> Response:
        """End the lease of an instance; the agent stays registered."""
        known = _own_agent(request, agent_id)
        if not _LEASE.fullmatch(lease_id):
            raise RequestError("There is no such lease.", code="not_found")
        await self._parts.registrar.leave(known, LeaseId(lease_id))
        return Response(status_code=204)

    async def delete_agent(self, request: Request, agent_id: str) -> Response:
        """Remove an agent with all its instances."""
        await self._parts.registrar.remove(_own_agent(request, agent_id))
        return Response(status_code=204)

    async def get_agents(self, request: Request) -> Response:
        """List agents: all for an admin, itself for an agent."""
        identity = identity_of(request)
        if identity.role is Role.AGENT and not identity.every_role:
            own = self._parts.registrar.describe_one(AgentId(identity.subject))
            return json_response(agents_view([] if own is None else [own]))
        return json_response(agents_view(self._parts.registrar.describe()))

    async def get_agent(self, request: Request, agent_id: str) -> Response:
        """One agent: its declaration, its instances and what was observed."""
        description = self._parts.registrar.describe_one(_own_agent(request, agent_id))
        if description is None:
            raise _unknown_agent()
        return json_response(agent_view(description))

    async def _receive_frame(self, request: Request, agent_id: str, model: type[ModelT]) -> ModelT:
        """The frame in the body; `agent_id` may be left out there and may not differ."""
        known = _own_agent(request, agent_id)
        document = await receive_document(request, self._parts.rules)
        if document.setdefault("agent_id", known) != known:
            raise refuse_field("/agent_id", "Must be the agent of the path.")
        return validate_document(model, document)


def _other_host(scope: Scope) -> str | None:
    """The address of the client, None where it is on this host: then both ends have one address."""
    client, server = scope.get("client"), scope.get("server")
    if client is None or (server is not None and client[0] == server[0]):
        return None
    try:
        return None if ip_address(client[0]).is_loopback else str(client[0])
    except ValueError:
        return None


def _own_agent(request: Request, agent_id: str) -> AgentId:
    """The path's agent, if the key may act for it; a name no agent can have is unknown."""
    if not _NAME.fullmatch(agent_id):
        raise _unknown_agent()
    check_agent(identity_of(request), AgentId(agent_id))
    return AgentId(agent_id)


def _unknown_agent() -> RegistrationError:
    return RegistrationError("There is no agent of this id.", code="unknown_agent")
