"""`dispatcher run`: the whole gateway in one process, with agents in it where wanted."""

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from dispatcher.assembly.running import Running, open_dispatcher
from dispatcher.cli.connection import Connection
from dispatcher.cli.reload import reloading
from dispatcher.errors import ConfigurationError, DispatcherError
from dispatcher.gateway.app import Application
from dispatcher.observe.log import configure_logging
from dispatcher.registry.agent import Liveness
from dispatcher.registry.description import AgentDescription
from dispatcher.sdk.agent import Agent
from dispatcher.sdk.inbox import Inbox
from dispatcher.sdk.memory_inbox import MemoryInbox
from dispatcher.sdk.runtime import Runtime, RuntimeOptions, serving
from dispatcher.sdk.sqlite_inbox import SqliteInbox
from dispatcher.settings import Settings, effective

logger = logging.getLogger(__name__)
BACKLOG = 2048


async def serve(settings: Settings, read: Callable[[], Settings], agents: Sequence[str]) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is in hand; `read` reads the settings again.

    Raises ConfigurationError, with one sentence, for whatever keeps it from starting.
    """
    configure_logging(settings.log_level, as_json=settings.log_format == "json")
    found = [load_agent(name) for name in agents]
    with listening(settings.server.host, settings.server.port) as listener:
        async with open_dispatcher(settings) as running:
            logger.info("settings.effective", extra={"settings": effective(settings)})
            if settings.auth.development:
                logger.warning("development.no_keys", extra={"note": "every caller may do everything"})
            async with agents_inside(running, found):
                _warn_of_absent(running, found)
                _calm_collector()
                with stopped_by_signals(running):
                    async with reloading(running, read):
                        _announce(listener)
                        await serve_app(running, listener)


def _calm_collector() -> None:
    """What was made at start stays: the collector need not look at it again (11 % of CPU under load).

    How seldom it looks at the rest is set for every command (`dispatcher.__main__`).
    """
    gc.collect()
    gc.freeze()


def _announce(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"listening on http://{host}:{port}\n")
    sys.stdout.flush()


def load_agent(name: str) -> Agent:
    """The agent that `module:attribute` names; looks in the current directory too.

    Raises ConfigurationError, with one sentence, that says what of it is missing or wrong.
    """
    module_name, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(map(str.isidentifier, module_name.split("."))):
        raise ConfigurationError(f"{name!r} does not name an agent: write it as module:attribute")
    module = _imported(module_name)
    if not hasattr(module, attribute):
        raise ConfigurationError(f"the module {module_name!r} has no attribute {attribute!r}")
    agent = getattr(module, attribute)
    if not isinstance(agent, Agent):
        raise ConfigurationError(f"{name!r} is not a dispatcher.sdk.Agent")
    return agent


def _imported(name: str) -> object:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what somebody else's module raises
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise ConfigurationError(f"there is no module {name!r}") from None
        raise ConfigurationError(f"the module {name!r} can't be imported: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """Kind and message on one line; a syntax error's message holds file and line."""
    if isinstance(error, DispatcherError):
        return error.message
    return " ".join(f"{type(error).__name__}: {error}".split())


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
    """Run agents in this process over the in-process channel; they drain on leaving.

    One that may not do a task twice remembers its tasks in a file in the data folder.
    """
    link = running.link
    if link is None:
        if agents:
            raise ConfigurationError("agents run in this process only without a broker")
        yield
        return
    async with AsyncExitStack() as stack:
        for agent in agents:
            drain_s = running.parts.signals.drain.handlers_s
            options = RuntimeOptions(instance_name="inside", drain_s=drain_s)
            inbox = await stack.enter_async_context(_inbox(agent, running.settings.data_dir))
            await stack.enter_async_context(serving(Runtime(agent, link, inbox, options=options)))
        yield


@asynccontextmanager
async def _inbox(agent: Agent, folder: Path) -> AsyncIterator[Inbox]:
    inbox = await _opened_inbox(agent, folder)
    try:
        yield inbox
    finally:
        await inbox.aclose()


async def _opened_inbox(agent: Agent, folder: Path) -> Inbox:
    if all(handler.idempotent for handler in agent.handlers.values()):
        return MemoryInbox()
    return await SqliteInbox.open(_inbox_file(agent, folder))


def _inbox_file(agent: Agent, folder: Path) -> Path:
    """A path in a folder that exists, unless it can't be made: then opening the file says so."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder / f"inbox-{agent.agent_id}.db"


def _warn_of_absent(running: Running, inside: Sequence[Agent]) -> None:
    """Name the agents that are registered and can't be reached: messages for them are not answered."""
    if running.link is None:
        return
    ours = {agent.agent_id for agent in inside}
    described = running.parts.registrar.describe()
    absent = [d.agent.agent_id for d in described if d.agent.agent_id not in ours and _is_absent(d)]
    if absent:
        logger.warning("agents.not_running", extra={"agent_ids": absent})


def _is_absent(described: AgentDescription) -> bool:
    """Without a broker only agents over HTTP run elsewhere; other leases are of a process that ended."""
    return described.agent.declaration.channel != "http" or described.status.liveness is Liveness.OFFLINE


async def serve_app(running: Running, listener: socket.socket) -> None:
    """Serve HTTP on a listening socket until `running.stop`, then until open connections are done."""
    server = Server(http_config(running.app, running.parts.signals.drain.serving_s))
    async with asyncio.TaskGroup() as group:
        group.create_task(_stop_with(running, server))
        await server.serve(sockets=[listener])
        running.stop()


def http_config(app: Application, stop_s: float) -> uvicorn.Config:
    """How uvicorn serves the application; open connections get about `stop_s` seconds at the end.

    Whom a trusted proxy (`FORWARDED_ALLOW_IPS`, uvicorn's own variable) speaks for is told to all routes
    but the hot one, which has no use for a client's address.
    """
    config = uvicorn.Config(
        app,
        loop="none",
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(stop_s)),
    )
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=config.forwarded_allow_ips)
    return config


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
