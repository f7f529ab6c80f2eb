"""The command line of an agent that runs alone: `python -m agents.order --broker amqp://…`."""

import argparse
import asyncio
import gc
import logging
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from dispatcher.errors import DispatcherError
from dispatcher.identifiers import InstanceId, new_id
from dispatcher.observe.lean_record import LeanRecord
from dispatcher.observe.turn_handler import TurnHandler
from dispatcher.protocol.topology import Topology
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.log_line import LogLine
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.on_demand import new_loop, postgres_inbox, sqlite_inbox
from dispatcher.sdk.rabbitmq import RabbitLink
from dispatcher.sdk.runtime import Runtime, RuntimeOptions

GC_THRESHOLDS = (10_000, 20, 50)
"""Less often than by default: what is there after the start stays, and a task leaves little behind."""


def run(agent: Agent, argv: Sequence[str] | None = None) -> NoReturn:
    """Run the agent on RabbitMQ until SIGTERM or Ctrl-C, drain, and exit.

    Exits 0 after a drain, 1 with one sentence on standard error when it can't run or is
    refused, 2 for a wrong command line. A broker or dispatcher that is not there is waited for.
    """
    options = read_command_line(agent, argv)
    _configure_logging()
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(_run(agent, options))
    except DispatcherError as error:
        print(f"{agent.agent_id}: {error.message} ({error.error_code})", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    sys.exit(0)


def read_command_line(agent: Agent, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of `run`; exits 2 when they can't be read."""
    parser = argparse.ArgumentParser(description=f"Run the agent {agent.agent_id} on RabbitMQ.")
    parser.add_argument(
        "--broker", required=True, type=broker_url, metavar="URL", help="amqp://user:password@host/"
    )
    parser.add_argument("--prefix", default="ard", help="prefix of all exchange and queue names")
    parser.add_argument(
        "--inbox",
        default="memory",
        type=inbox_place,
        metavar="memory|sqlite:PATH|postgresql://URL",
        help="what was done is remembered there; several instances need PostgreSQL",
    )
    parser.add_argument("--instance", default=host_name(), help="stable over restarts (%(default)s)")
    parser.add_argument("--key", help="the agent's API key; not needed in development mode")
    parser.add_argument("--environment", help="overrides the environment the agent declares")
    return parser.parse_args(argv)


def broker_url(text: str) -> str:
    """The text itself, if it is an AMQP URL with a host."""
    parts = urlsplit(text)
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
        raise argparse.ArgumentTypeError("must read amqp://user:password@host:port/vhost")
    return text


def inbox_place(text: str) -> Path | str | None:
    """The file of `sqlite:PATH`, the URL of a PostgreSQL database, None for `memory`."""
    kind, _, path = text.partition(":")
    if kind == "sqlite" and path:
        return Path(path)
    if kind in {"postgresql", "postgres"} and urlsplit(text).hostname:
        return text
    if text == "memory":
        return None
    raise argparse.ArgumentTypeError(
        "must be memory, sqlite:PATH or postgresql://user:password@host/database"
    )


def host_name() -> str:
    """This host's name, reduced to what an instance may be called."""
    name = re.sub(r"[^a-z0-9._-]+", "-", socket.gethostname().lower()).strip("-._")
    return name[:64] or "main"


def _configure_logging() -> None:
    """Lines on standard error; what the agent's author has set up before stays as it is."""
    if not logging.getLogger().handlers and logging.getLogRecordFactory() is logging.LogRecord:
        # What no line shows costs two thirds of a record; the standard library's own ways to leave it out.
        logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
        logging._srcfile = None  # noqa: SLF001 - as documented, so that no line looks up its caller
        logging.setLogRecordFactory(LeanRecord)
    terminal = TurnHandler(sys.stderr)
    terminal.setFormatter(LogLine())
    logging.basicConfig(level=logging.INFO, handlers=[terminal])
    for library in ("aio_pika", "aiormq"):  # the link tells their failures in its own words
        logging.getLogger(library).setLevel(logging.CRITICAL)


async def _run(agent: Agent, options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    instance = RuntimeOptions(
        instance_name=options.instance,
        instance_id=new_id(),
        key=options.key,
        channel="rabbitmq",
        environment=options.environment,
    )
    link = RabbitLink(options.broker, Topology(prefix=options.prefix), InstanceId(instance.instance_id))
    async with _inbox(options.inbox, agent.agent_id) as inbox:
        runtime = Runtime(agent, link, inbox, options=instance)
        async with link:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLDS)
            await runtime.run(stop)


@asynccontextmanager
async def _inbox(place: Path | str | None, agent_id: str) -> AsyncIterator[Inbox]:
    inbox: Inbox
    if place is None:
        inbox = MemoryInbox()
    elif isinstance(place, Path):
        inbox = await sqlite_inbox(place)
    else:
        inbox = await postgres_inbox(place, agent_id)
    try:
        yield inbox
    finally:
        await inbox.aclose()
