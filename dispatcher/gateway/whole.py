"""Responses whose body is all there: a server that can sends them at once."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

ANSWER = "dispatcher.answer"
"""ASGI extension: `scope["extensions"][ANSWER]["answer"](scope, status, headers, body)` sends all of it.

It returns False, with nothing sent, where the server can't. The headers are not checked, and nothing that is
put around `send`, as a middleware does to add some, sees them.
"""
STATUS = "dispatcher.status"
"""Where a request's scope keeps the status of the response that began."""


class WholeResponse(Response):
    """A JSON document. Values of its headers are ours: constants, numbers, and ids that we made."""

    media_type = "application/json"

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """The given ones, which hold neither length nor type, and these two."""
        given = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        length, media_type = b"%d" % len(self.body), self.media_type.encode()
        self.raw_headers = [*given, (b"content-length", length), (b"content-type", media_type)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it: two messages, and what looks at them on their way, cost more than the rest."""
        server = scope.get("extensions", {}).get(ANSWER)
        if server is None or not server["answer"](scope, self.status_code, self.raw_headers, self.body):
            await super().__call__(scope, receive, send)
        else:
            scope[STATUS] = self.status_code
