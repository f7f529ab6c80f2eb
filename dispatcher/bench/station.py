"""The inside of a measuring process: it takes orders as JSON lines and answers each with one."""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import orjson
import uvloop

Order = Mapping[str, Any]
Reply = Mapping[str, Any]


async def serve_orders(obey: Callable[[Order], Awaitable[Reply]]) -> None:
    """Obey one order after the other until standard input ends, which it does with our parent."""
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        say(await obey(orjson.loads(line)))


def say(reply: Reply) -> None:
    """One line of JSON on standard output."""
    sys.stdout.buffer.write(orjson.dumps(reply) + b"\n")
    sys.stdout.buffer.flush()


def run_station(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop, with what the start made kept out of later garbage collections."""
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
