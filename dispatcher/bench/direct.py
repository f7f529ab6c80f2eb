"""The agent's handler behind a bare HTTP server: what an embedded dispatch is compared with.

`python -m dispatcher.bench.direct` says {"url"} and serves until its input ends.
"""

import asyncio
import sys

import orjson
from aiohttp import web

from dispatcher.bench.echo import Note, echo
from dispatcher.bench.station import run_station, say


async def answer(request: web.Request) -> web.Response:
    """Read the body, call the handler, write its reply."""
    given = Note.model_validate(orjson.loads(await request.read())["context"])
    reply = await echo(given)
    data = reply.data.model_dump() if reply.data else {}
    body = orjson.dumps({"status": "completed", "answer": reply.text, "data": data})
    return web.Response(body=body, content_type="application/json")


async def main() -> None:
    """Serve on a free port of the loopback address."""
    application = web.Application()
    application.router.add_post("/v1/chat", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        say({"url": f"http://{host}:{port}"})
        await asyncio.to_thread(sys.stdin.buffer.read)
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    run_station(main())
