"""A request as a stream of events, over as many connections as it takes."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict
from urllib.parse import quote

from dispatcher.errors import UnavailableError
from dispatcher.sdk.event_source import EventParser
from dispatcher.sdk.transport import HttpRequest, HttpResponse, StreamedResponse, Transport

SILENCE_S = 60.0
"""A connection without a byte for so long is given up; gateways send something every few seconds."""
LAST = "answer"
_EVENTS = "text/event-stream"


class Event(TypedDict):
    """One event; `data` is what the gateway's documentation says of its kind.

    `event` is `accepted`, `plan`, `decision`, `delivery`, `progress`, `partial`, `result` or `answer`;
    a kind that is not in this list may be skipped.
    """

    id: str
    event: str
    data: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Following:
    """How far a request was followed; `post` asks for it as long as its id is not known."""

    post: HttpRequest = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    request_id: str | None = None
    last_id: str | None = None
    has_ended: bool = False

    def request(self) -> HttpRequest:
        """What to send now: the message, or where we were."""
        resumed = {} if self.last_id is None else {"Last-Event-ID": self.last_id}
        if self.request_id is None:
            return replace(self.post, headers={**self.post.headers, "Accept": _EVENTS, **resumed})
        path = f"/v1/requests/{quote(self.request_id, safe='')}/events"
        headers = {**self.headers, "Accept": _EVENTS, **resumed}
        return HttpRequest(method="GET", path=path, headers=headers, seconds=SILENCE_S)

    async def events(self, transport: Transport) -> AsyncGenerator[Event]:
        """The events of one connection, in order and without those that were seen.

        Raises `UnavailableError` when it breaks off before the end, `RefusedResponseError` for a refusal.
        """
        async with transport.stream(self.request()) as response:
            if response.headers.get("content-type", "").partition(";")[0] != _EVENTS:
                self._read(await whole(response))
                return
            parser = EventParser()
            async with aclosing(response.chunks) as chunks:
                async for chunk in chunks:
                    for name, event_id, data in parser.feed(chunk):
                        event = Event(id=event_id, event=name, data=_document(data))
                        self._note(event)
                        yield event
                        if self.has_ended:
                            return
        raise UnavailableError("the stream of events broke off")

    def _note(self, event: Event) -> None:
        self.last_id = event["id"] or self.last_id
        self.has_ended = event["event"] == LAST
        if self.request_id is None and isinstance(event["data"].get("request_id"), str):
            self.request_id = event["data"]["request_id"]

    def _read(self, response: HttpResponse) -> None:
        """A response without events: nothing more to come (204), or accepted and to be followed (202)."""
        if response.status == 204:
            self.has_ended = True
            return
        if response.status >= 300:
            raise RefusedResponseError(response)
        request_id = _document(response.body).get("request_id")
        if not isinstance(request_id, str) or self.request_id is not None:
            raise UnavailableError("the gateway sends no events")
        self.request_id = request_id


class RefusedResponseError(Exception):
    """The gateway said no; `response` says why."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(f"HTTP status {response.status}")
        self.response = response


async def whole(response: StreamedResponse) -> HttpResponse:
    """The response with all of its body."""
    async with aclosing(response.chunks) as chunks:
        body = b"".join([chunk async for chunk in chunks])
    return HttpResponse(status=response.status, headers=response.headers, body=body)


def _document(data: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
