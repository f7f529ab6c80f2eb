"""A caller's client over a transport that answers from a script."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dispatcher.sdk.client import Client
from dispatcher.sdk.transport import HttpRequest, HttpResponse, StreamedResponse, Transport


class StubTransport(Transport):
    """Answers from a script; an exception in it is raised."""

    def __init__(self, *script: HttpResponse | Exception) -> None:
        self.script = list(script)
        self.requests: list[HttpRequest] = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        pass

    async def send(self, request):
        self.requests.append(request)
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    @asynccontextmanager
    async def stream(self, request):
        response = await self.send(request)
        yield StreamedResponse(
            status=response.status, headers=response.headers, chunks=chunks_of(response.body)
        )


async def chunks_of(body: bytes) -> AsyncGenerator[bytes]:
    yield body


class Hurried:
    """A clock on which every sleep is over at once."""

    def monotonic(self):
        return 0.0

    async def sleep(self, seconds):
        pass


def responding(document, *, status=200, headers=None) -> HttpResponse:
    return HttpResponse(status=status, headers=headers or {}, body=json.dumps(document).encode())


def client_over(*script, key=None) -> tuple[Client, StubTransport]:
    transport = StubTransport(*script)
    return Client("http://nowhere", key, transport=transport, clock=Hurried()), transport
