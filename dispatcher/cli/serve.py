"""`dispatcher run`: the whole gateway in one process, with agents in it where wanted."""

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvicorn

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.errors import ConfigurationError
from dispatcher.observe.log import configure_logging
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.settings import Settings, effective, load_settings

logger = logging.getLogger(__name__)
BACKLOG = 2048


async def serve(
    config: Path | None, *, host: str | None, port: int | None, development: bool, agents: Sequence[str]
) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is in hand.

    Raises ConfigurationError, with one sentence, for whatever keeps it from starting.
    """
    settings = _settings(config, host=host, port=port, development=development)
    configure_logging(settings.log_level, as_json=settings.log_format == "json")
    found = [load_agent(name) for name in agents]
    with listening(settings.server.host, settings.server.port) as listener:
        async with open_dispatcher(settings) as running:
            logger.info("settings.effective", extra={"settings": effective(settings)})
            if settings.auth.development:
                logger.warning("development.no_keys", extra={"note": "every caller may do everything"})
            async with agents_inside(running, found):
                with stopped_by_signals(running):
                    _announce(listener)
                    await serve_app(running, listener)


def _announce(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"listening on http://{host}:{port}\n")
    sys.stdout.flush()


def _settings(config: Path | None, *, host: str | None, port: int | None, development: bool) -> Settings:
    given = {"host": host, "port": port}
    server = {name: value for name, value in given.items() if value is not None}
    return load_settings(config, server=server, auth={"development": True} if development else {})


def load_agent(name: str) -> Agent:
    """The agent that `module:attribute` names; looks in the current directory too."""
    module_name, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        agent = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError):
        raise ConfigurationError(f"there is no agent {name!r}; name it as module:attribute") from None
    if not isinstance(agent, Agent):
        raise ConfigurationError(f"{name!r} is not a dispatcher.sdk.Agent")
    return agent


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A bound and listening socket; raises ConfigurationError where the address is taken or not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except (OSError, UnicodeError) as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {_why_not(error)}") from None
        yield listener


def _why_not(error: OSError | UnicodeError) -> str:
    """The system's reason; a name that leads to no address (`gaierror`) has no such number."""
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return "not an address of this host"


@asynccontextmanager
async def agents_inside(running: Running, agents: Sequence[Agent]) -> AsyncIterator[None]:
    """Run agents in this process over the in-process channel; they drain on leaving."""
    link = running.link
    if link is None:
        if agents:
            raise ConfigurationError("agents run in this process only without a broker")
        yield
        return
    async with AsyncExitStack() as stack:
        for agent in agents:
            options = RuntimeOptions(instance_name="inside")
            runtime = Runtime(agent, link, MemoryInbox(), options=options)
            await stack.enter_async_context(serving(runtime))
        yield


async def serve_app(running: Running, listener: socket.socket) -> None:
    """Serve HTTP on a listening socket until `running.stop`, then at most `drain_s` longer."""
    config = uvicorn.Config(
        running.app,
        loop="none",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(running.settings.server.drain_s),
    )
    server = Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(_stop_with(running, server))
        await server.serve(sockets=[listener])
        running.stop()


async def _stop_with(running: Running, server: uvicorn.Server) -> None:
    await running.stopping.wait()
    server.should_exit = True


class Server(uvicorn.Server):
    """Leaves signals to us: uvicorn raises them again at its end, before our parts are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install nothing."""
        yield


@contextlib.contextmanager
def stopped_by_signals(running: Running) -> Iterator[None]:
    """Begin the shutdown on SIGINT and SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.stop)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
