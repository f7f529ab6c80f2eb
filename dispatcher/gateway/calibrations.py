"""Calibrations, for administrators: what was proposed, what is in force, and changing that."""

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import RequestError
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.calibration_models import CalibrationDetailReply, CalibrationsReply, StateBody
from dispatcher.gateway.openapi import GUARDED, READS_BODY, problems, takes
from dispatcher.gateway.parts import GatewayParts
from dispatcher.gateway.receive import receive_document
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.validation import validate_document
from dispatcher.registry.access import Role
from dispatcher.routing.calibration_record import calibration_document
from dispatcher.routing.stored_calibration import State, Stored, Unreadable, brief

DIGITS = 9
"""Of a number; more fit no INTEGER column."""


class CalibrationRoutes:
    """`/v1/calibrations` and what belongs to it."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        guard = Security(Guard(parts.access, Role.ADMIN))
        self.router = APIRouter(tags=["calibrations"], dependencies=[guard])
        self.router.add_api_route(
            "/v1/calibrations",
            self.get_all,
            methods=["GET"],
            responses={
                200: {"model": CalibrationsReply, "description": "Newest first."},
                **problems(*GUARDED),
            },
        )
        self.router.add_api_route(
            "/v1/calibrations/{number}",
            self.get_one,
            methods=["GET"],
            responses={
                200: {"model": CalibrationDetailReply, "description": "The calibration with its report."},
                **problems(*GUARDED, 404, 409),
            },
        )
        self.router.add_api_route(
            "/v1/calibrations/{number}/state",
            self.post_state,
            methods=["POST"],
            responses={
                200: {"model": CalibrationDetailReply, "description": "The calibration as it is now."},
                **problems(*GUARDED, *READS_BODY, 404, 409),
            },
            openapi_extra=takes(StateBody),
        )

    async def get_all(self) -> Response:
        """The newest 200 calibrations."""
        found = await self._parts.calibrations.list()
        return json_response({"calibrations": [brief(one) for one in found]})

    async def get_one(self, number: str) -> Response:
        """One calibration with what it was measured to do."""
        return json_response(_whole(await self._parts.calibrations.show(_read(number))))

    async def post_state(self, request: Request, number: str) -> Response:
        """Put a calibration in force or in shadow, or retire it; every replica follows within a second."""
        body = validate_document(StateBody, await receive_document(request, self._parts.rules))
        by = identity_of(request).subject
        changed = await self._parts.calibrations.change(_read(number), State(body.state), by)
        return json_response(_whole(changed))


def _read(number: str) -> int:
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
        raise RequestError("There is no calibration of this number.", code="not_found")
    return int(number)


def _whole(stored: Stored | Unreadable) -> dict[str, object]:
    if isinstance(stored, Unreadable):
        return {**brief(stored), "report": None, "document": None}
    document = calibration_document(stored.recorded)
    return {**brief(stored), "report": stored.report, "document": document}
