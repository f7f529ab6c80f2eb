"""An agent over HTTP, as its developer would write it with FastAPI, that may be called directly.

`python teller.py GATEWAY_URL CREDENTIAL INBOX_FILE`; prints `serving ENDPOINT` once it is registered.
"""

import asyncio
import os
import socket
import sys
from functools import partial
from pathlib import Path

import httpx2
import uvicorn
from fastapi import FastAPI, Request, Response

from dispatcher.clock import SystemClock
from dispatcher.identifiers import new_id
from dispatcher.sdk import Agent, Client, DirectGate, SqliteInbox, TaskView

agent = Agent("teller")


@agent.handler("fortune.tell", description="Tells fortunes.", examples=["tell me my fortune"])
async def tell(task: TaskView) -> str:
    """A fortune for whoever asks."""
    return f"{os.getpid()}: {task.user_id} will travel"


@agent.handler("fortune.brood", description="Broods over fortunes until it is told to stop.")
async def brood() -> str:
    """No fortune at all."""
    print("brooding", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped brooding", flush=True)
    return "nothing"


def application(gate: DirectGate) -> FastAPI:
    """One endpoint, behind the gate."""
    app = FastAPI()

    @app.post("/tasks")
    async def tasks(request: Request) -> Response:
        reply = await gate.answer(request.headers, await request.body())
        return Response(reply.body, reply.status, dict(reply.headers))

    @app.delete("/tasks/{task_id}")
    async def cancel(request: Request, task_id: str) -> Response:
        return Response(status_code=gate.cancel(request.headers, task_id).status)

    return app


async def join(gateway_url: str, gate: DirectGate, endpoint: str) -> None:
    """Register, and give signs of life for ever."""
    frame = {
        "agent_id": "teller",
        "instance_name": "one",
        "instance_id": new_id(),
        "inbox": "sqlite",
        "inbox_id": new_id(),
        "declaration": gate.declaration(endpoint).to_json(),
    }
    async with httpx2.AsyncClient(base_url=gateway_url) as gateway, Client(gateway_url) as client:
        lease = (await gateway.post("/v1/agents", json=frame)).raise_for_status().json()
        gate.learn(await client.direct_keys("teller"))
        print(f"serving {endpoint}", flush=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(gate.renew(partial(client.direct_keys, "teller")))
            beat = {"lease_id": lease["lease_id"], "instance_id": lease["instance_id"]}
            while True:
                await SystemClock().sleep(lease["heartbeat_ms"] / 1000)
                try:
                    await gateway.post("/v1/agents/teller/heartbeat", json={**beat, "running": gate.running})
                except httpx2.HTTPError as error:
                    print(f"no heartbeat: {type(error).__name__}", flush=True)


async def main(gateway_url: str, credential: str, inbox_file: str) -> None:
    """Serve until killed."""
    inbox = await SqliteInbox.open(Path(inbox_file))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}/tasks"
        async with DirectGate(agent, inbox, credential=credential) as gate, asyncio.TaskGroup() as group:
            server = uvicorn.Server(uvicorn.Config(application(gate), log_level="warning"))
            group.create_task(server.serve(sockets=[listener]))
            group.create_task(join(gateway_url, gate, endpoint))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
