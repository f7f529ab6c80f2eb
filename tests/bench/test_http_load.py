"""The process that sends, against a gateway that accepts everything and ends most of it later."""

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import count

from dispatcher.bench.http_load import obey

NEVER = "request-0"


class SlowGateway:
    """Answers every message with 202; a request has ended when it is read the second time, but one never."""

    def __init__(self) -> None:
        self._numbers = count()
        self._reads: dict[str, int] = {}

    async def serve(self, reader, writer):
        while head := (await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""):
            method, path, _ = head.decode().splitlines()[0].split()
            if method == "POST":
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            status, document = self._answer(method, path)
            body = json.dumps(document).encode()
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        writer.close()

    def _answer(self, method, path):
        if method == "POST":
            return 202, {"request_id": f"request-{next(self._numbers)}", "status": "open"}
        request_id = path.rpartition("/")[2]
        self._reads[request_id] = self._reads.get(request_id, 0) + 1
        is_open = request_id == NEVER or self._reads[request_id] < 2
        return 200, {"status": "open" if is_open else "completed"}


@asynccontextmanager
async def listening(gateway):
    ended: list[asyncio.Event] = []

    async def serve(reader, writer):
        ended.append(is_over := asyncio.Event())
        try:
            await gateway.serve(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()
        is_over.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
        await asyncio.gather(*(is_over.wait() for is_over in ended))


async def test_every_accepted_request_is_followed_to_its_end():
    order = {"do": "open", "payload_kb": 1, "requests": 5, "rate": 1e4, "connections": 2, "settle_s": 0.5}
    async with listening(SlowGateway()) as url:
        report = await obey({**order, "url": url})

    assert report["outcomes"] == {"accepted": 5}
    assert report["accepted_became"] == {"completed": 4}
    assert report["accepted_without_end"] == 1
