"""One whole request through the embedded dispatcher, beside a bare hand-over in the same event loop."""

import asyncio

from dispatcher.sdk import Agent, TaskView
from dispatcher.sdk.testing import running
from tests.bench.timing import Timing, measure, print_table

RUNS = 200


def echo() -> Agent:
    """An agent that does nothing, at once."""
    agent = Agent("echo", max_load=64)

    @agent.handler("echo.say", description="Says that it was asked.", examples=["echo"], idempotent=True)
    async def say(_task: TaskView) -> str:
        return "here"

    return agent


async def bare_hand_over() -> Timing:
    """A queue to a task and a queue back: what any in-process dispatch is at least."""
    there: asyncio.Queue[str] = asyncio.Queue()
    back: asyncio.Queue[str] = asyncio.Queue()

    async def serve() -> None:
        while True:
            await back.put(await there.get())

    async def hand_over() -> None:
        await there.put("echo")
        await back.get()

    async with asyncio.TaskGroup() as group:
        server = group.create_task(serve())
        timing = await measure("bare hand-over between two tasks", hand_over, runs=RUNS)
        server.cancel()
    return timing


async def run() -> None:
    """Print the table."""
    async with running(echo()) as client:
        timings = [
            await bare_hand_over(),
            await measure(
                "request with its capability named",
                lambda: client.chat("echo", capability="echo.say"),
                runs=RUNS,
            ),
            await measure("request to be understood", lambda: client.chat("echo"), runs=RUNS),
        ]
    print_table("One request, SQLite with every commit on disk, in-process channel", timings)
