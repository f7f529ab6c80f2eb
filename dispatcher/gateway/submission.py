"""What a caller is told about a message that was accepted."""

from collections.abc import Mapping

from starlette.responses import Response

from dispatcher.dispatch.lifecycle.request import RequestState, RequestStatus
from dispatcher.gateway.parts import Submitted
from dispatcher.gateway.reply import json_response
from dispatcher.gateway.view import request_view


def submission_headers(submitted: Submitted) -> Mapping[str, str]:
    """Where the request is, and whether it is an older one."""
    headers = {"Location": f"/v1/requests/{submitted.request_id}"}
    if submitted.replayed:
        headers["Idempotency-Replayed"] = "true"
    return headers


def submission_reply(submitted: Submitted, state: RequestState | None = None) -> Response:
    """200 with the request once it has ended; 202 while it has not, or nothing is known of it."""
    headers = submission_headers(submitted)
    if state is None or state.request.status is RequestStatus.OPEN:
        accepted = {"request_id": submitted.request_id, "status": RequestStatus.OPEN}
        return json_response(accepted, status=202, headers=headers)
    return json_response(request_view(state), headers=headers)
