"""The process that sends HTTP requests: `python -m dispatcher.bench.http_load`, orders on its input.

{"do": "closed", "url", "payload_kb", "concurrency", "seconds"} and
{"do": "open", "url", "payload_kb", "requests", "rate", "connections", "settle_s"}.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

import orjson

from dispatcher.bench.closed_loop import closed_loop
from dispatcher.bench.http_connection import HttpConnection, HttpReply, connect
from dispatcher.bench.open_loop import Fates, open_loop
from dispatcher.bench.post import Target, get, posts
from dispatcher.bench.station import Order, Reply, run_station, serve_orders
from dispatcher.clock import SystemClock

_COMPLETED = b'"status":"completed"'
_LOOK_S = 0.2
_ENOUGH_OPEN = 50
"""Found in one look, the younger ones need not be asked yet."""


def became(reply: HttpReply) -> str:
    """One word for a reply: completed, accepted (202), refused (429, 503), ended (otherwise), error."""
    if reply.status == 200:
        return "completed" if _COMPLETED in reply.body else "ended"
    if reply.status == 202:
        return "accepted"
    return "refused" if reply.status in {429, 503} else "error"


async def obey(order: Order) -> Reply:
    """Measure as told."""
    target = Target(url=order["url"])
    if order["do"] == "closed":
        return await _closed(target, order)
    return await _open(target, order)


async def _closed(target: Target, order: Order) -> Reply:
    connections = [await connect(target.address) for _ in range(order["concurrency"])]
    try:
        requests = posts(target, order["payload_kb"])
        return await closed_loop([_caller(one, requests) for one in connections], order["seconds"])
    finally:
        for connection in connections:
            connection.close()


def _caller(connection: HttpConnection, requests: Iterator[bytes]) -> Callable[[], Awaitable[bool]]:
    async def call() -> bool:
        return became(await connection.send(next(requests))) == "completed"

    return call


class Pool:
    """At most `limit` connections; who finds none waits, and that time counts."""

    def __init__(self, address: tuple[str, int], limit: int) -> None:
        self._address = address
        self._idle: list[HttpConnection] = []
        self._places = asyncio.Semaphore(limit)

    async def send(self, request: bytes) -> HttpReply:
        """Send on an idle connection or a new one; raises OSError where it is lost.

        A kept one may have been hung up just then: the same request goes once more, on a new one,
        as the SDK's client does. Its idempotency key makes it one request.
        """
        async with self._places:
            while self._idle:
                kept = self._idle.pop()
                if kept.is_open:
                    with suppress(ConnectionError):
                        return await self._on(kept, request)
                    break
            return await self._on(await connect(self._address), request)

    async def _on(self, connection: HttpConnection, request: bytes) -> HttpReply:
        reply = await connection.send(request)
        self._idle.append(connection)
        return reply

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in self._idle:
            connection.close()


async def _open(target: Target, order: Order) -> Reply:
    requests, accepted = posts(target, order["payload_kb"]), list[str]()
    async with _pool(target, order["connections"]) as pool:

        async def send() -> str:
            try:
                reply = await pool.send(next(requests))
            except OSError:
                return "unknown"
            if reply.status == 202:
                accepted.append(orjson.loads(reply.body)["request_id"])
            return became(reply)

        fates = await open_loop(send, requests=order["requests"], rate=order["rate"], clock=SystemClock())
        unfinished = await _settle(pool, target, accepted, fates, order["settle_s"])
    return fates.report() | {"accepted_without_end": unfinished}


@asynccontextmanager
async def _pool(target: Target, limit: int) -> AsyncIterator[Pool]:
    pool = Pool(target.address, limit)
    try:
        yield pool
    finally:
        pool.close()


async def _settle(pool: Pool, target: Target, accepted: Sequence[str], fates: Fates, seconds: float) -> int:
    """How many of the requests answered with 202 have not ended `seconds` later; the oldest come first."""
    clock = SystemClock()
    deadline, left = clock.monotonic() + seconds, dict.fromkeys(accepted)
    while left and clock.monotonic() < deadline:
        still_open = 0
        for request_id in tuple(left):
            if (ending := await _ending(pool, target, request_id)) is not None:
                fates.note_later(ending)
                del left[request_id]
            elif (still_open := still_open + 1) == _ENOUGH_OPEN:
                break
        if left:
            await clock.sleep(_LOOK_S)
    return len(left)


async def _ending(pool: Pool, target: Target, request_id: str) -> str | None:
    """How a request ended; None while it is open, or nobody says."""
    with suppress(OSError):
        reply = await pool.send(get(target, f"/v1/requests/{request_id}"))
        status = orjson.loads(reply.body)["status"] if reply.status == 200 else "open"
        return None if status == "open" else str(status)
    return None


if __name__ == "__main__":
    run_station(serve_orders(obey))
