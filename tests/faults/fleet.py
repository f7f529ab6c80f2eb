"""Gateways and agents as processes of their own, behind proxies that a test can break."""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from dispatcher.clock import SystemClock
from dispatcher.protocol.topology import Topology
from tests.faults.history import Died, Ended, Event, Started
from tests.faults.proxy import Proxy
from tests.scenario.program import Program, dispatcher, run
from tests.services.ports import LOOPBACK, free_ports

AGENTS = ("ada", "bob")
SETTINGS = {
    "DISPATCHER_ENCODER__NAME": "hashing",
    "DISPATCHER_LOG_LEVEL": "warning",
    "DISPATCHER_LIVENESS__HEARTBEAT_S": "0.5",
    "DISPATCHER_LIVENESS__SUSPECT_AFTER_S": "1.5",
    "DISPATCHER_LIVENESS__OFFLINE_AFTER_S": "4.5",
    "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": "2",
    "DISPATCHER_DELIVERY__CLAIM_S": "6",
}
"""A tenth of the usual times, as far as the settings' ranges allow."""
READY_S = 120.0
EXIT_S = 45.0
"""A process told to end has 40 seconds to drain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """One proxy for each way that a test may break."""

    gateway_broker: Proxy
    agent_broker: Mapping[str, Proxy]
    database: Proxy


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Two gateways, two agents with an inbox file each, and what they wrote down."""

    folder: Path
    broker_url: str
    database_url: str
    topology: Topology
    wires: Wires
    settings: Mapping[str, str]
    ports: tuple[int, int]
    gateways: dict[int, Program] = field(default_factory=dict)
    agents: dict[str, Program] = field(default_factory=dict)
    dead: list[Died] = field(default_factory=list)
    ended: list[Program] = field(default_factory=list)

    @property
    def urls(self) -> tuple[str, str]:
        """Where the gateways listen; the same after a restart."""
        return f"http://{LOOPBACK}:{self.ports[0]}", f"http://{LOOPBACK}:{self.ports[1]}"

    async def start_gateway(self, number: int, **variables: str) -> None:
        """Start it, with these variables on top, and return when it listens."""
        self.gateways[number] = self.gateway_program(number, **variables)
        await asyncio.to_thread(self.gateways[number].wait_for, r"listening on http", READY_S)

    def gateway_program(self, number: int, **more: str) -> Program:
        """A new process of the gateway that listens where number `number` does."""
        variables = {
            **SETTINGS,
            **self.settings,
            "DISPATCHER_STORE__URL": through(self.database_url, self.wires.database),
            "DISPATCHER_BROKER__URL": through(self.broker_url, self.wires.gateway_broker),
            "DISPATCHER_BROKER__PREFIX": self.topology.prefix,
            **more,
        }
        options = ("run", "--development", "--port", str(self.ports[number]))
        return Program(sys.executable, "-m", "tests.faults.gateway", *options, variables=variables)

    async def start_agent(self, name: str, inbox: str | None = None, **variables: str) -> None:
        """Start it, with an inbox file of this name and these variables; return when it is registered."""
        self.agents[name] = Program(
            *(sys.executable, "-m", "tests.faults.echo", name, str(self.journal(name))),
            *("--broker", through(self.broker_url, self.wires.agent_broker[name])),
            *("--prefix", self.topology.prefix, "--instance", "one"),
            *("--inbox", f"sqlite:{self.folder / (inbox or name)}.db"),
            variables=variables,
        )
        await asyncio.to_thread(self.agents[name].wait_for, r"registration\.granted", READY_S)

    def signal_agent(self, name: str, number: signal.Signals) -> None:
        """Send a signal that does not end it."""
        self.agents[name].send(number)

    def abandon_agent(self, name: str) -> Program:
        """Count on its process no longer: another one can be started in its place."""
        self.ended.append(self.agents.pop(name))
        return self.ended[-1]

    def journal(self, name: str) -> Path:
        """What the agent's processes wrote down, the dead ones' too."""
        return self.folder / f"{name}.jsonl"

    def kill_gateway(self, number: int) -> None:
        """SIGKILL; returns when it is dead."""
        self._bury(self.gateways.pop(number), signal.SIGKILL)

    def kill_agent(self, name: str) -> None:
        """SIGKILL; returns when it is dead."""
        self._bury(self.agents.pop(name), signal.SIGKILL)
        self._note_death(name)

    async def end_gateway(self, number: int) -> int:
        """SIGTERM; its exit code."""
        return await asyncio.to_thread(self._bury, self.gateways.pop(number), signal.SIGTERM)

    async def end_agent(self, name: str) -> int:
        """SIGTERM; its exit code."""
        code = await asyncio.to_thread(self._bury, self.agents.pop(name), signal.SIGTERM)
        self._note_death(name)
        return code

    def has_ended(self, who: int | str) -> bool:
        """Whether the process of this gateway or agent has ended by itself."""
        return _has_ended(self.gateways[who] if isinstance(who, int) else self.agents[who])

    async def revive(self) -> list[str]:
        """Start again what ended by itself, as a supervisor would; names what that was."""
        ended = [f"gateway {n}" for n, program in self.gateways.items() if _has_ended(program)]
        ended += [name for name, program in self.agents.items() if _has_ended(program)]
        for number in (0, 1):
            if f"gateway {number}" in ended:
                await self.end_gateway(number)
                await self.start_gateway(number)
        for name in AGENTS:
            if name in ended:
                await self.end_agent(name)
                await self.start_agent(name)
        return ended

    async def end(self) -> dict[str, int]:
        """SIGTERM for all that still run, agents first; exit codes by name."""
        agents = {name: await self.end_agent(name) for name in tuple(self.agents)}
        gateways = {f"gateway {number}": await self.end_gateway(number) for number in tuple(self.gateways)}
        return {**agents, **gateways}

    def close(self) -> None:
        """End whatever still runs, at once."""
        for program in (*self.gateways.values(), *self.agents.values(), *self.ended):
            program.close()

    def starts(self, name: str) -> Sequence[Started]:
        """The handlers that the agent's processes began so far."""
        return [event for event in read_journal(self.journal(name)) if isinstance(event, Started)]

    def ends(self, name: str) -> Sequence[Ended]:
        """The handlers that ended so far."""
        return [event for event in read_journal(self.journal(name)) if isinstance(event, Ended)]

    def events(self) -> Sequence[Event]:
        """What agents did, and when they died."""
        written = [event for name in AGENTS for event in read_journal(self.journal(name))]
        return [*written, *self.dead]

    def text(self) -> str:
        """Everything that all processes printed."""
        programs = (*self.ended, *self.gateways.values(), *self.agents.values())
        return "\n".join(program.text for program in programs)

    def _bury(self, program: Program, number: signal.Signals) -> int:
        self.ended.append(program)
        program.send(number)
        program.send(signal.SIGCONT)
        return program.wait(EXIT_S)

    def _note_death(self, name: str) -> None:
        born = [line["instance"] for line in _lines(self.journal(name)) if line["event"] == "born"]
        self.dead.append(Died(time=SystemClock().monotonic(), instance=born[-1]))


def _has_ended(program: Program) -> bool:
    return program._process.poll() is not None


def read_journal(path: Path) -> Sequence[Started | Ended]:
    """An agent's starts and ends of handlers."""
    kinds = {"started": Started, "ended": Ended}
    events: list[Started | Ended] = []
    for line in _lines(path):
        kind = kinds.get(line.pop("event"))
        if kind is Ended:
            del line["instance"]
        if kind is not None:
            events.append(kind(**line))
    return events


def _lines(path: Path) -> list[dict[str, str]]:
    """The complete lines; a process may be in the middle of the last one."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def through(url: str, proxy: Proxy) -> str:
    """The same address by way of the proxy."""
    parts = urlsplit(url)
    account = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{account}@{LOOPBACK}:{proxy.port}").geturl()


def port_of(url: str) -> int:
    """The port that a service's URL names."""
    port = urlsplit(url).port
    assert port is not None
    return port


@asynccontextmanager
async def fresh_database(server_url: str, *, upgraded: bool = True) -> AsyncIterator[str]:
    """A database, of the schema that this version needs unless it is to be empty, dropped afterwards."""
    name = f"faults_{secrets.token_hex(6)}"
    url = urlsplit(server_url)._replace(path=f"/{name}").geturl()
    await fetch(server_url, f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        if upgraded:
            variables = {"DISPATCHER_STORE__URL": url}
            done = await asyncio.to_thread(run, *dispatcher("upgrade"), variables=variables)
            assert done.returncode == 0, done.stderr
        yield url
    finally:
        await fetch(server_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def fetch(url: str, statement: str) -> Sequence[tuple[Any, ...]]:
    """Run one statement on a connection of its own; its rows."""
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


@asynccontextmanager
async def open_fleet(
    folder: Path, broker_url: str, server_url: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Fleet]:
    """A running fleet on a database of its own; everything is ended with the block."""
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(fresh_database(server_url))

        async def proxy(url: str) -> Proxy:
            return await stack.enter_async_context(Proxy(port_of(url)).running())

        wires = Wires(
            gateway_broker=await proxy(broker_url),
            agent_broker={name: await proxy(broker_url) for name in AGENTS},
            database=await proxy(database_url),
        )
        fleet = Fleet(
            folder=folder,
            broker_url=broker_url,
            database_url=database_url,
            topology=Topology(prefix=f"faults-{secrets.token_hex(4)}"),
            wires=wires,
            settings=settings or {},
            ports=free_ports(2),  # type: ignore[arg-type]
        )
        stack.callback(fleet.close)
        await asyncio.gather(*(fleet.start_gateway(number) for number in range(2)))
        await asyncio.gather(*(fleet.start_agent(name) for name in AGENTS))
        yield fleet
