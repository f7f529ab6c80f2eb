"""Requests as streams of events: from the message on, or followed and resumed later."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from dispatcher.dispatch.lifecycle.cursor import Cursor
from dispatcher.errors import RequestError
from dispatcher.gateway.auth import Guard, identity_of
from dispatcher.gateway.fields import header_values
from dispatcher.gateway.headers import admits_events, read_event_id
from dispatcher.gateway.openapi import GUARDED, RESUMES, problems, streams
from dispatcher.gateway.parts import GatewayParts, Submitted
from dispatcher.gateway.reply import encode
from dispatcher.gateway.requests import known_form, unknown
from dispatcher.gateway.sse import KEEP_ALIVE, EventStream, Stream, encode_event
from dispatcher.gateway.submission import submission_headers, submission_reply
from dispatcher.gateway.view import event_view
from dispatcher.identifiers import RequestId
from dispatcher.registry.access import Identity, Role


class EventRoutes:
    """`/v1/requests/{request_id}/events`."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self.router = APIRouter(
            tags=["requests"],
            dependencies=[Security(Guard(parts.access, Role.CALLER, Role.ADMIN))],
        )
        self.router.add_api_route(
            "/v1/requests/{request_id}/events",
            self.get_events,
            methods=["GET"],
            responses={
                200: {"description": "What happened, and what happens up to the answer.", **streams()},
                204: {"description": "All was told up to Last-Event-ID; there will be no more."},
                **problems(*GUARDED, 404, 406),
            },
            response_class=Response,
            openapi_extra={"parameters": [RESUMES]},
        )

    async def get_events(self, request: Request, request_id: str) -> Response:
        """Follow a request: its events from the first one, or from after `Last-Event-ID`, to the answer."""
        if not admits_events(header_values(request, "accept")):
            raise RequestError("Accept must admit text/event-stream.", code="not_acceptable")
        event_id = read_event_id(header_values(request, "last-event-id"))
        told = partial(_tell, self._parts, known_form(request_id), identity_of(request), event_id)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Stream]:
            with self._parts.watcher.place():
                async with aclosing(told()) as chunks:
                    yield Stream(chunks=chunks)

        return EventStream(opened, self._parts.rules.stream_stall_s)


def stream_submitted(
    parts: GatewayParts, request: Request, submit: Callable[[], Awaitable[Submitted]]
) -> Response:
    """The response that has a message accepted and tells what happens to it.

    `Last-Event-ID` resumes where an idempotency key's first request is answered again. Without such
    a key nothing can be resumed: RequestError `invalid_event_id` keeps a client that tries from
    having its message done twice.
    """
    event_id = read_event_id(header_values(request, "last-event-id"))
    if event_id is not None and not header_values(request, "idempotency-key"):
        raise RequestError("Only a message with an Idempotency-Key can be resumed.", code="invalid_event_id")

    @asynccontextmanager
    async def opened() -> AsyncIterator[Stream]:
        with parts.watcher.place():
            submitted = await submit()
            last = event_id if submitted.replayed else None
            async with aclosing(_tell(parts, submitted.request_id, identity_of(request), last)) as chunks:
                yield Stream(
                    chunks=chunks,
                    headers=submission_headers(submitted),
                    otherwise=submission_reply(submitted),
                )

    return EventStream(opened, parts.rules.stream_stall_s)


async def _tell(
    parts: GatewayParts, request_id: RequestId, identity: Identity, event_id: str | None
) -> AsyncGenerator[bytes]:
    state = await parts.dispatcher.read(request_id, identity)
    if state is None:
        raise unknown()
    cursor = Cursor.start(state) if event_id is None else Cursor.read(event_id, state)
    following = parts.watcher.follow(request_id, cursor, parts.rules.stream_quiet_s)
    async with aclosing(following) as looks:
        async for events in looks:
            for event in events:
                yield encode_event(event.kind, str(event.cursor), encode(event_view(event, identity)))
            if not events:
                yield KEEP_ALIVE
