import logging

import pytest

from dispatcher.clock import SystemClock
from dispatcher.gateway.edge import Edge

SCOPE = {"type": "http", "method": "GET", "path": "/"}


async def _receive():
    return {"type": "http.request"}


async def _ignore(message):
    pass


async def test_an_error_after_the_response_began_is_logged_and_closes_the_connection(caplog):
    caplog.set_level(logging.INFO)
    sent = []

    async def breaks(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("late")

    async def send(message):
        sent.append(message)

    with pytest.raises(ValueError, match="late"):
        await Edge(breaks, SystemClock())(dict(SCOPE), _receive, send)

    assert len(sent) == 1
    assert [r.message for r in caplog.records] == ["http.internal_error", "http.request"]


async def test_what_is_not_http_passes_through(caplog):
    caplog.set_level(logging.INFO)
    seen = []

    async def lifespan(scope, receive, send):
        seen.append(scope["type"])

    await Edge(lifespan, SystemClock())({"type": "lifespan"}, _receive, _ignore)

    assert seen == ["lifespan"]
    assert caplog.records == []
