"""An endpoint for chat completions on loopback that can be told to misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[dict[str, Any]], object]
"""From a prompt's data to the JSON value of the reply."""


@dataclass
class ChatStub:
    """What it was asked, and how it answers: `mood` names what it does, `answer` makes what it says."""

    url: str = ""
    mood: str = "well"
    answer: Answer = lambda data: {"echo": data}
    tokens: object = 50
    """What it says that a call cost."""
    paths: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request came that gets no answer until `released` is set."""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call as the mood has it."""
        asked = await request.json()
        self.paths.append(request.path)
        self.asked.append(asked)
        self.keys.append(request.headers.get("Authorization"))
        if self.mood == "slow":
            self.arrived.set()
            await self.released.wait()
        if self.mood == "broken off":
            assert request.transport is not None
            request.transport.abort()
        if self.mood.isdecimal():
            headers = {"Location": "/elsewhere"} if self.mood == "307" else {}
            return web.Response(status=int(self.mood), text='{"error": "secret details"}', headers=headers)
        data = json.loads(asked["messages"][1]["content"])
        return web.Response(body=self._body(data), content_type="application/json")

    def _body(self, data: dict[str, Any]) -> bytes:
        fixed = {
            "html": b"<html>secret details</html>",
            "endless": b" " * 4_000_000,
            "no choices": b'{"choices": []}',
            "null": b"null",
            "number": b"7",
            "no text": b'{"choices": [{"message": {"content": null}}]}',
            "prose": b'{"choices": [{"message": {"content": "Sure! Here are the pieces"}}]}',
            "cut": b'{"choices": [{"message": {"content": "{\\"pieces\\": ["}}]}',
            "deep": b'{"choices": [{"message": {"content": "' + b"[" * 5000 + b'"}}]}',
        }
        if self.mood in fixed:
            return fixed[self.mood]
        text = json.dumps(self.answer(data), ensure_ascii=False)
        usage = {"total_tokens": self.tokens}
        choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        return json.dumps({"object": "chat.completion", "choices": choices, "usage": usage}).encode()


@asynccontextmanager
async def chat_stub() -> AsyncIterator[ChatStub]:
    """A running one."""
    stub = ChatStub()
    application = web.Application()
    application.router.add_post("/{path:.*}", stub.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        stub.url = f"http://{host}:{port}/v1/chat/completions"
        yield stub
    finally:
        stub.released.set()
        await runner.cleanup()
