"""Is the process up, and can it do its work: for load balancers, without a key."""

from fastapi import APIRouter
from starlette.responses import Response

from dispatcher.gateway.models import HealthReply, ReadyReply
from dispatcher.gateway.openapi import problems
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.problem import BY_CODE, problem_response
from dispatcher.gateway.reply import json_response


class HealthRoutes:
    """`/healthz` and `/readyz`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self.router = APIRouter(tags=["health"])
        self.router.add_api_route(
            "/healthz",
            self.get_health,
            methods=["GET"],
            responses={200: {"model": HealthReply, "description": "The process is up."}, **problems(500)},
        )
        self.router.add_api_route(
            "/readyz",
            self.get_readiness,
            methods=["GET"],
            responses={
                200: {"model": ReadyReply, "description": "Every part is ready."},
                **problems(500, 503),
            },
        )

    async def get_health(self) -> Response:
        """Say that the process answers; asks no other part."""
        return json_response({"status": "ok"})

    async def get_readiness(self) -> Response:
        """Say whether requests can be taken, else which part is not ready and why."""
        states = dict(self._parts.readiness())
        if self._parts.stopping():
            states["gateway"] = "shutting down"
        missing = {name: reason for name, reason in states.items() if reason is not None}
        if not missing:
            return json_response({"status": "ready", "parts": states})
        detail = f"Not ready: {', '.join(sorted(missing))}."
        return problem_response(
            BY_CODE["not_ready"],
            "not_ready",
            detail,
            members={"parts": missing},
            headers={"Retry-After": "1"},
        )
