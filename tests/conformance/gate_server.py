"""An agent's gate behind a real HTTP server on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from dispatcher.sdk.direct import DirectGate, GateReply

Report = Callable[[bytes], Awaitable[object]]
"""Where results go that are told later."""


@asynccontextmanager
async def serving(gate: DirectGate, *, later: Report | None = None) -> AsyncIterator[str]:
    """Its endpoint. It answers with the result, or with 202 and reports the result `later`."""
    async with asyncio.TaskGroup() as group:

        async def take(request: web.Request) -> web.Response:
            headers, body = request.headers.copy(), await request.read()
            if later is None:
                return _response(await gate.answer(headers, body))
            group.create_task(_report(gate.answer(headers, body), later))
            return web.Response(status=202)

        async def cancel(request: web.Request) -> web.Response:
            return _response(gate.cancel(request.headers, request.match_info["task_id"]))

        app = web.Application(client_max_size=2**21)
        app.router.add_post("/tasks", take)
        app.router.add_delete("/tasks/{task_id}", cancel)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        try:
            yield f"http://{host}:{port}/tasks"
        finally:
            await runner.cleanup()


async def _report(answer: Awaitable[GateReply], later: Report) -> None:
    reply = await answer
    if reply.status == 200:
        await later(reply.body)


def _response(reply: GateReply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body or None, headers=reply.headers)
