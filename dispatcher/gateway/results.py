"""Where agents over HTTP call back, with a result or with what happens on the way to it."""

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import RequestError, UnavailableError
from dispatcher.gateway.auth import Guard, identity_of, sending_agent
from dispatcher.gateway.openapi import GUARDED, READS_BODY, REPORTS, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_bytes
from dispatcher.identifiers import TaskId
from dispatcher.protocol.link import Settlement
from dispatcher.protocol.topology import MAX_FRAME_BYTES
from dispatcher.registry.access import Role

_STORED = "The frame is stored: a task's first result counts, and signals of its newest attempt."


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
                204: {"description": _STORED},
                **problems(*GUARDED, *READS_BODY),
            },
            openapi_extra=takes(*REPORTS),
        )

    async def post_result(self, request: Request, task_id: str) -> Response:
        """Take a task's result, or a signal of an agent that answered 202; post it again after a 503.

        An agent that declares `leases` keeps a long task (`lease_ms`) by posting `started` when it
        begins and `renew` at least once in every `lease_ms` from then on.
        """
        body = await receive_bytes(request, MAX_FRAME_BYTES, self._parts.rules.body_timeout_s)
        sender = sending_agent(identity_of(request))
        settlement = await self._parts.accept_result(TaskId(task_id), body, sender)
        if settlement is Settlement.DEAD:
            raise RequestError(
                "This is neither a result nor a signal frame of that task.", code="unreadable_result"
            )
        if settlement is Settlement.REQUEUE:
            raise UnavailableError("what was posted can't be stored now")
        return Response(status_code=204)
