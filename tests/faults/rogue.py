"""Agents over HTTP as processes of their own: one keeps the contract, one does what it is told to.

`python -m tests.faults.rogue NAME JOURNAL GATEWAY [--closed]`; `--closed` registers a port that nobody
listens on. What to do wrong stands in the task's context as `act`; only the agent `BAD` obeys it.
"""

import asyncio
import gzip
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path

import httpx2

from dispatcher.clock import SystemClock
from dispatcher.identifiers import new_id
from dispatcher.protocol.frames import ResultBody, ResultFrame, ResultStatus, TaskFrame
from tests.faults.echo import Journal
from tests.services.ports import LOOPBACK

BAD, GOOD = "aaron", "zoe"
"""Between equals the lower name is chosen first."""
SAFE, ONCE, ALONE, BRIEF = "http.safe", "http.once", "http.alone", "http.brief"
LIMIT_MS = {SAFE: 20_000, ONCE: 20_000, ALONE: 20_000, BRIEF: 2_000}
OFFERED = {BAD: (SAFE, ONCE, ALONE, BRIEF), GOOD: (SAFE, ONCE)}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
TAKEN = b"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
UNKNOWN = b"HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
LATE_S = 3.0


class Rogue:
    """One agent's HTTP side; writes down what it ran and what its callbacks were answered."""

    def __init__(self, name: str, journal: Journal, gateway: httpx2.AsyncClient) -> None:
        self._name, self._journal, self._gateway = name, journal, gateway
        self._clock = SystemClock()
        self._ran: dict[str, ResultBody] = {}
        self.running = 0

    async def on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one task and do to it what it says; it knows nothing of looks and cancellations."""
        self.running += 1
        try:
            task = await _read_task(reader)
            if task is None:
                await _send(writer, UNKNOWN)
                return
            act = str(task.context.data.get("act") or "answer") if self._name == BAD else "answer"
            await ACTS[act](self, task, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self._journal.write("hung up")
        finally:
            self.running -= 1
            writer.close()

    def run(self, task: TaskFrame, **changes: object) -> ResultFrame:
        """Do the task, or tell again what came of it: what a handler would have answered."""
        if task.idempotency_key not in self._ran:
            self._ran[task.idempotency_key] = self._do(task)
        frame = ResultFrame(
            request_id=task.request_id,
            task_id=task.task_id,
            attempt=task.attempt,
            token=task.token,
            instance_id=self._name,
            status=ResultStatus.SUCCESS,
            result=self._ran[task.idempotency_key],
        )
        return frame.model_copy(update=changes)

    def _do(self, task: TaskFrame) -> ResultBody:
        nonce, ran = str(task.context.data.get("nonce")), new_id()
        self._journal.write(
            "started",
            run=ran,
            agent=self._name,
            request_id=task.request_id,
            key=task.idempotency_key,
            attempt=task.attempt,
            nonce=nonce,
        )
        self._journal.write("ended", run=ran, cancelled=False)
        return ResultBody(text=nonce, data={"nonce": nonce, "run": ran})

    async def answer(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """What the contract asks for."""
        await _send_json(writer, self.run(task).model_dump_json().encode())

    async def stay_silent(self, _: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """Never answer."""
        await writer.wait_closed()

    async def drip(self, _: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """One byte after the other, for ever."""
        await _send(writer, HEAD + b"Content-Length: 100000\r\n\r\n")
        while True:
            await _send(writer, b" ")
            await self._clock.sleep(0.1)

    async def cut(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """Half of a good answer."""
        body = self.run(task).model_dump_json().encode()
        await _send(writer, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[: len(body) // 2])

    async def never_end(self, _: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """A body without an end."""
        await _send(writer, HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        while True:
            await _send(writer, CHUNK)

    async def announce_much(self, _: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """A body of one gigabyte."""
        await _send(writer, HEAD + b"Content-Length: 1000000000\r\n\r\n")
        while True:
            await _send(writer, b"x" * 0x10000)

    async def bomb(self, _: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """Fifty megabytes in fifty kilobytes."""
        head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_packed())
        await _send(writer, head + _packed())

    async def fail_politely(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """200, and the business was not done."""
        failed = {"business_error": True, "error_code": "sold_out"}
        await _send_json(writer, self.run(task, **failed).model_dump_json().encode())

    async def call_back_late(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """202, and the result when nobody waits any more."""
        await _send(writer, TAKEN)
        frame = self.run(task)
        await self._clock.sleep(LATE_S)
        await self._post(task, frame)

    async def contradict(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """202, then the result, the result again, another one, and one with a token of its own making."""
        await _send(writer, TAKEN)
        frame = self.run(task)
        other = frame.model_copy(update={"result": ResultBody(text="something else")})
        forged = other.model_copy(update={"token": "f" * len(task.token)})
        for posted in (forged, frame, frame, other, forged):
            await self._post(task, posted)

    async def answer_and_die(self, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        """A good answer as the last thing it does."""
        await self.answer(task, writer)
        await self._clock.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)

    async def _post(self, task: TaskFrame, frame: ResultFrame) -> None:
        headers = {"Content-Type": "application/json"}
        path, body = f"/v1/results/{task.task_id}", frame.model_dump_json()
        reply = await self._gateway.post(path, content=body, headers=headers)
        self._journal.write("called back", request_id=task.request_id, status=reply.status_code)


Act = Callable[[Rogue, TaskFrame, asyncio.StreamWriter], Awaitable[None]]


def _garbled(spoil: Callable[[str], str]) -> Act:
    async def act(rogue: Rogue, task: TaskFrame, writer: asyncio.StreamWriter) -> None:
        await _send_json(writer, spoil(rogue.run(task).model_dump_json()).encode())

    return act


ACTS: Mapping[str, Act] = {
    "answer": Rogue.answer,
    "silent": Rogue.stay_silent,
    "drip": Rogue.drip,
    "cut": Rogue.cut,
    "endless": Rogue.never_end,
    "gigabyte": Rogue.announce_much,
    "bomb": Rogue.bomb,
    "no json": _garbled(lambda text: text[:-1]),
    "wrong schema": _garbled(lambda text: text.replace('"status":"success"', '"status":"splendid"')),
    "wrong request": _garbled(lambda text: json.dumps(json.loads(text) | {"request_id": new_id()})),
    "nan": _garbled(lambda text: text.replace('"nonce":', '"nan":NaN,"nonce":')),
    "business error": Rogue.fail_politely,
    "late": Rogue.call_back_late,
    "contradict": Rogue.contradict,
    "die": Rogue.answer_and_die,
}


@cache
def _packed() -> bytes:
    return gzip.compress(b"x" * 50_000_000)


async def _read_task(reader: asyncio.StreamReader) -> TaskFrame | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if not head.startswith("post "):
        return None
    length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
    return TaskFrame.model_validate_json(await reader.readexactly(int(length.partition(":")[2])))


async def _send_json(writer: asyncio.StreamWriter, body: bytes) -> None:
    await _send(writer, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _join(
    name: str, endpoint: str, rogue: Rogue, gateway: httpx2.AsyncClient, registered: Callable[[], None]
) -> None:
    """Register, say so, and give signs of life for ever."""
    capabilities = [
        {
            "name": capability,
            "descriptions": [f"Answers over HTTP ({capability})"],
            "idempotent": capability == SAFE,
            "timeout_ms": LIMIT_MS[capability],
        }
        for capability in OFFERED[name]
    ]
    declaration = {"channel": "http", "endpoint": endpoint, "capabilities": capabilities, "max_load": 32}
    who = {"agent_id": name, "instance_name": "one", "instance_id": new_id()}
    frame = {**who, "inbox": "sqlite", "inbox_id": new_id(), "declaration": declaration}
    lease = (await gateway.post("/v1/agents", json=frame)).raise_for_status().json()
    registered()
    print("registered", flush=True)
    lease_of = {"lease_id": lease["lease_id"], "instance_id": lease["instance_id"]}
    while True:
        await SystemClock().sleep(lease["heartbeat_ms"] / 1000)
        beat = {**lease_of, "running": rogue.running}
        try:
            await gateway.post(f"/v1/agents/{name}/heartbeat", json=beat)
        except httpx2.HTTPError as error:
            print(f"no heartbeat: {type(error).__name__}", flush=True)


async def main(name: str, journal: Path, gateway_url: str, *options: str) -> None:
    """Serve and stay registered until killed."""
    async with httpx2.AsyncClient(base_url=gateway_url) as gateway:
        rogue = Rogue(name, Journal(journal), gateway)
        server = await asyncio.start_server(rogue.on_connection, LOOPBACK, 0, limit=2**21)
        port = server.sockets[0].getsockname()[1]
        registered = server.close if "--closed" in options else lambda: None
        async with server:
            if name == BAD:
                _packed()
            await _join(name, f"http://{LOOPBACK}:{port}/tasks", rogue, gateway, registered)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
