"""`make demo`: the whole dispatcher in one process, three requests over HTTP, and a readable trace.

Exits 0 only if every request went as it should. The last line is one JSON object.
"""

import asyncio
import json
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from agents.faq import agent as faq
from agents.logistics import agent as logistics
from agents.order import agent as order
from agents.promotion import agent as promotion
from agents.trace import print_trace
from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.cli.serve import agents_inside, listening, serve_app
from dispatcher.observe.log import configure_logging
from dispatcher.sdk import Client
from dispatcher.settings import load_settings

Reply = Mapping[str, Any]
USER = "u1001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One request of the demo and what has to come of it; `check` names what is wrong, or nothing."""

    title: str
    message: str
    check: Callable[[Reply], Sequence[str]]


def two_intents(reply: Reply) -> Sequence[str]:
    """The order first, then the discount from the order's amount."""
    return [
        *_expect(reply, "completed", [("order.query", "completed"), ("promotion.quote", "completed")]),
        *_expect_discount(reply),
    ]


def parallel_intents(reply: Reply) -> Sequence[str]:
    """Two parts that wait for nobody."""
    wanted = [("logistics.track", "completed"), ("faq.answer", "completed")]
    waits = [part["capability"] for part in reply["parts"] if part["waited_ms"]]
    return [*_expect(reply, "completed", wanted), *(f"{name} waited" for name in waits)]


def out_of_scope(reply: Reply) -> Sequence[str]:
    """No agent at all."""
    return _expect(reply, "fallback", [(None, "out_of_scope")])


SCENES = (
    Scene(
        title="Two intents, the second needs the first one's result",
        message="我上周买的手机怎么还没发货？另外现在有没有优惠？",
        check=two_intents,
    ),
    Scene(
        title="Two independent intents, in parallel",
        message="Where is my parcel right now, and what is your return policy?",
        check=parallel_intents,
    ),
    Scene(
        title="Out of scope: nobody is forced to answer",
        message="How do black holes form?",
        check=out_of_scope,
    ),
)


def _expect(reply: Reply, status: str, parts: Sequence[tuple[str | None, str]]) -> list[str]:
    found = [(part["capability"], part["status"]) for part in reply["parts"]]
    wrong = [] if reply["status"] == status else [f"status is {reply['status']}, not {status}"]
    return wrong if found == list(parts) else [*wrong, f"parts are {found}, not {list(parts)}"]


def _expect_discount(reply: Reply) -> list[str]:
    amounts = [((part["result"] or {}).get("data") or {}).get("amount") for part in reply["parts"]]
    same = len(amounts) == 2 and amounts[0] is not None and amounts[0] == amounts[1]
    return [] if same else [f"the discount was not computed from the order's amount: {amounts}"]


async def play(url: str, console: Console) -> tuple[list[Reply], list[str]]:
    """Post all scenes to a running dispatcher; the replies and everything that is wrong."""
    replies: list[Reply] = []
    wrong: list[str] = []
    async with Client(url) as client:
        for number, scene in enumerate(SCENES, 1):
            console.rule(f"{number}. {scene.title}")
            console.print(f"[bold]POST /v1/chat[/bold]  {scene.message}")
            with _spinner(console) as progress:
                progress.add_task("split, route, deliver, merge")
                reply = await client.chat(scene.message, user_id=USER)
            decisions = await client.decisions(reply["request_id"])
            print_trace(console, reply, decisions)
            replies.append(reply)
            wrong += [f"request {number}: {fault}" for fault in scene.check(reply)]
    return replies, wrong


def summary(replies: Sequence[Reply]) -> str:
    """The demo's last line."""
    shown = ("capability", "agent_id", "status")
    requests = [
        {
            "request_id": reply["request_id"],
            "status": reply["status"],
            "parts": [{name: part[name] for name in shown} for part in reply["parts"]],
        }
        for reply in replies
    ]
    return json.dumps({"requests": requests}, ensure_ascii=False)


async def main() -> int:
    """Start everything, play, stop everything; the exit code."""
    console = Console(width=118)
    configure_logging("error", as_json=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        listening("127.0.0.1", 0) as listener,
        _spinner(console) as progress,
    ):
        progress.add_task("starting: SQLite, in-process channel, packaged encoder, four agents")
        settings = load_settings(data_dir=Path(folder), auth={"development": True})
        async with (
            open_dispatcher(settings) as running,
            agents_inside(running, (order, promotion, faq, logistics)),
        ):
            progress.stop()
            host, port = listener.getsockname()
            replies, wrong = await _served(running, listener, f"http://{host}:{port}", console)
    for fault in wrong:
        console.print(f"[red]not as expected:[/red] {fault}")
    sys.stdout.write(summary(replies) + "\n")
    return 1 if wrong else 0


async def _served(
    running: Running, listener: socket.socket, url: str, console: Console
) -> tuple[list[Reply], list[str]]:
    async with asyncio.TaskGroup() as group:
        server = group.create_task(serve_app(running, listener))
        outcome = await play(url, console)
        running.stop()
        await server
    return outcome


def _spinner(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
