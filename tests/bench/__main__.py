"""`python -m tests.bench load-with-kill`: the published load, its broker crashed half way and started again.

Runs `dispatcher bench load` at a given rate beside a private broker and database, and prints its
JSON as the last line, with `kill` in it: when the broker was killed, in seconds after the first
request, and for how long nobody answered at its port. `longest_stall_ms` is the longest time
without a completed request.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from dispatcher.clock import Clock, SystemClock
from tests.services import postgres, rabbitmq
from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitNode

BEGINS = " requests at "
"""In the command's last word before it sends."""


@contextmanager
def passable_folder() -> Iterator[Path]:
    """A folder for the run; PostgreSQL's own account must be able to pass through it."""
    with tempfile.TemporaryDirectory(prefix="ard-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@asynccontextmanager
async def started(service: RabbitNode | PostgresServer) -> AsyncIterator[None]:
    """A service of our own, stopped at the end."""
    try:
        await asyncio.to_thread(service.start)
        yield
    finally:
        await asyncio.to_thread(service.close)


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command with its output in pipes, ended with the block."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def load_with_kill(requests: int, rate: float, clock: Clock) -> dict[str, Any]:
    """The command's report, and what was done to the broker."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(passable_folder())
        node, server = RabbitNode(folder / "broker"), PostgresServer(folder / "database")
        for service in (node, server):
            await stack.enter_async_context(started(service))
        where = ("--broker", node.url, "--store", server.url)
        amount = ("--requests", str(requests), "--rate", str(rate))
        command = (sys.executable, "-m", "dispatcher", "bench", "load", *amount, *where, "--json")
        process = await stack.enter_async_context(running(*command))
        async with asyncio.TaskGroup() as group:
            begun = asyncio.Event()
            printed = group.create_task(_read_all(process))
            group.create_task(_pass_on(process, begun))
            await begun.wait()
            kill = await _kill_half_way(node, requests / rate, clock)
    if process.returncode:
        raise SystemExit(process.returncode)
    report: dict[str, Any] = json.loads(printed.result().splitlines()[-1])
    return report | {"kill": kill}


async def _read_all(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    printed = await process.stdout.read()
    await process.wait()
    return printed


async def _pass_on(process: asyncio.subprocess.Process, begun: asyncio.Event) -> None:
    """Repeat what it says; raises SystemExit when it ends before it sends anything."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        print(line, end="", file=sys.stderr, flush=True)
        if BEGINS in line:
            begun.set()
    if not begun.is_set():
        raise SystemExit(1)


async def _kill_half_way(node: RabbitNode, seconds: float, clock: Clock) -> dict[str, float]:
    began = clock.monotonic()
    await clock.sleep(seconds / 2)
    killed = clock.monotonic()
    print("killing the broker", file=sys.stderr, flush=True)
    await asyncio.to_thread(node.kill)
    await asyncio.to_thread(node.start)
    back = clock.monotonic()
    print("the broker is back", file=sys.stderr, flush=True)
    return {"at_s": round(killed - began, 2), "down_s": round(back - killed, 2)}


def main(arguments: Sequence[str]) -> int:
    """The exit status; 2 for wrong use or for a service that is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("what", choices=["load-with-kill"])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=500.0, help="per second")
    given = parser.parse_args(arguments)
    missing = [problem for problem in (rabbitmq.missing(), postgres.missing()) if problem]
    if missing:
        print(*missing, sep="\n", file=sys.stderr)
        return 2
    print(json.dumps(asyncio.run(load_with_kill(given.requests, given.rate, SystemClock()))))
    return 0


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C: what was started is stopped."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main(sys.argv[1:]))
