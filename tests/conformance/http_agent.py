"""A small agent behind a real HTTP server on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from aiohttp import web

from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus, TaskFrame


@asynccontextmanager
async def http_agent(gateway: httpx2.AsyncClient, *, calls_back: bool) -> AsyncIterator[str]:
    """Tells the time at the yielded address: in its reply, or with a callback to the gateway."""
    async with asyncio.TaskGroup() as later:

        async def take(request: web.Request) -> web.Response:
            task = TaskFrame.model_validate_json(await request.read())
            if not calls_back:
                return web.Response(body=_noon(task), content_type="application/json")
            later.create_task(_call_back(gateway, task))
            return web.Response(status=202)

        app = web.Application()
        app.router.add_post("/tasks", take)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            yield f"http://{host}:{port}/tasks"
        finally:
            await runner.cleanup()


async def _call_back(gateway: httpx2.AsyncClient, task: TaskFrame) -> None:
    headers = {"Content-Type": "application/json"}
    reply = await gateway.post(f"/v1/results/{task.task_id}", content=_noon(task), headers=headers)
    assert reply.status_code == 204, reply.text


def _noon(task: TaskFrame) -> bytes:
    result = ResultFrame(
        request_id=task.request_id,
        task_id=task.task_id,
        attempt=task.attempt,
        token=task.token,
        instance_id="clock-one",
        status=ResultStatus.SUCCESS,
        result=ResultBody(text="It is noon."),
    )
    return result.model_dump_json().encode()
