"""Where agents over HTTP call back with a result."""

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import RequestError, UnavailableError
from dispatcher.gateway.auth import Guard
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_bytes
from dispatcher.identifiers import TaskId
from dispatcher.protocol.frames import ResultFrame
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.registry.access import Role


class ResultRoutes:
    """`/v1/results/{task_id}`, at any replica."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self.router = APIRouter(tags=["agents"], dependencies=[Security(Guard(parts.access, Role.AGENT))])
        self.router.add_api_route(
            "/v1/results/{task_id}",
            self.post_result,
            methods=["POST"],
            status_code=204,
            responses={
                204: {"description": "The result is stored; what it changed, the attempt's token decides."},
                **problems(*GUARDED, *READS_BODY),
            },
            openapi_extra=takes(ResultFrame),
        )

    async def post_result(self, request: Request, task_id: str) -> Response:
        """Take a task's result; post it again after a 503."""
        body = await receive_bytes(request, MAX_FRAME_BYTES, self._parts.rules.body_timeout_s)
        settlement = await self._parts.accept_result(TaskId(task_id), body)
        if settlement is Settlement.DEAD:
            raise RequestError("This is not a result frame of that task.", code="unreadable_result")
        if settlement is Settlement.REQUEUE:
            raise UnavailableError("the result can't be stored now")
        return Response(status_code=204)
