"""The whole product as processes of its own: a gateway and, with a broker, an agent beside it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from dispatcher.bench.address import loopback_address
from dispatcher.bench.child import Child, running
from dispatcher.bench.echo import MESSAGES, agent
from dispatcher.bench.http_connection import connect
from dispatcher.bench.http_load import became
from dispatcher.bench.post import Target, posts
from dispatcher.bench.process_time import listener
from dispatcher.clock import Clock
from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.topology import Topology

BARE = "dispatcher.bench.bare_task"
DELETE_S = 30.0
DELETE_EACH_S = 0.05
READY_S = 60.0
_LOOK_S = 0.2
_UPGRADE_S = 60.0
_COMMAND = ("-m", "dispatcher")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Where broker and database are; `prefix` names everything that is made at the broker.

    The database is brought to the current schema and keeps the rows of the run. `agents` are those
    registered beside the one that works.
    """

    broker: str
    store: str
    prefix: str
    agents: tuple[AgentId, ...] = ()

    def processes(self) -> dict[str, int]:
        """Those of them that run on this machine and that we may look at."""
        ports = {
            "broker": loopback_address(self.broker, "amqp")[1],
            "store": loopback_address(self.store, "postgresql")[1],
        }
        found = {name: listener(port) for name, port in ports.items()}
        return {name: pid for name, pid in found.items() if pid is not None}

    def queues(self) -> tuple[str, ...]:
        """What a run may leave at the broker."""
        names = Topology(prefix=self.prefix)
        agents = (agent.agent_id, *self.agents)
        return (*map(names.task_queue, agents), *_properties(names, "_queue"))

    def exchanges(self) -> tuple[str, ...]:
        """What a run may leave at the broker."""
        return _properties(Topology(prefix=self.prefix), "_exchange")


def _properties(names: Topology, ending: str) -> tuple[str, ...]:
    """All names of one kind that need no argument, those that came with a later version too."""
    members = vars(Topology).items()
    found = (name for name, member in members if isinstance(member, property) and name.endswith(ending))
    return tuple(getattr(names, name) for name in found)


def given_services(broker: str | None, store: str | None, prefix: str) -> Services | None:
    """Both or neither; raises ConfigurationError otherwise, and for another machine's."""
    if broker is None and store is None:
        return None
    if broker is None or store is None:
        raise ConfigurationError("give both --broker and --store, or neither for the embedded mode")
    services = Services(broker=broker, store=store, prefix=prefix)
    services.processes()
    return services


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A gateway that answers, and the processes that take part in it."""

    target: Target
    processes: Mapping[str, int]


@asynccontextmanager
async def running_chain(
    folder: Path, services: Services | None, clock: Clock, encoder: str = "use"
) -> AsyncIterator[Chain]:
    """Start everything, else with default settings, and yield once all known messages are answered."""
    file = folder / "dispatcher.yaml"
    file.write_bytes(orjson.dumps(_settings(folder, services, encoder)))
    config = ("--config", str(file))
    async with AsyncExitStack() as stack:
        if services is not None:
            stack.push_async_callback(_delete, folder, services)
            async with running("upgrade", folder, *_COMMAND, "upgrade", *config) as upgrade:
                await upgrade.ended(_UPGRADE_S)
        inside = () if services else ("--agent", "dispatcher.bench.echo:agent")
        command = (*_COMMAND, "run", "--development", "--port", "0", *config, *inside)
        gateway = await stack.enter_async_context(running("gateway", folder, *command))
        target = Target(url=(await gateway.wait_for(r"listening on (http://\S+)"))[1])
        processes = {"gateway": gateway.pid}
        if services is not None:
            agent_process = await stack.enter_async_context(_agent(folder, services))
            processes |= {"agent": agent_process.pid} | services.processes()
        await _answers(target, clock)
        yield Chain(target=target, processes=processes)


def _settings(folder: Path, services: Services | None, encoder: str) -> Mapping[str, object]:
    """JSON is YAML."""
    own: dict[str, object] = {"data_dir": str(folder / "data"), "encoder": {"name": encoder}}
    if services is None:
        return own
    broker = {"url": services.broker, "prefix": services.prefix}
    return {**own, "store": {"url": services.store}, "broker": broker}


@asynccontextmanager
async def _agent(folder: Path, services: Services) -> AsyncIterator[Child]:
    reach = ("--broker", services.broker, "--prefix", services.prefix)
    async with running("agent", folder, "-m", "dispatcher.bench.echo", *reach) as child:
        yield child


async def _delete(folder: Path, services: Services) -> None:
    """Take away what gateway and agent made at the broker; they have ended."""
    made = {"queues": services.queues(), "exchanges": services.exchanges()}
    reach = (services.broker, f"{services.prefix}-delete")
    async with running("delete", folder, "-m", BARE, "caller", *reach) as caller:
        await caller.wait_for("ready")
        await caller.ask({"do": "delete", **made}, DELETE_S + DELETE_EACH_S * len(services.queues()))


async def _answers(target: Target, clock: Clock) -> None:
    """Ask every message until its agent is there; from then on all texts are known to the encoder."""
    deadline = clock.monotonic() + READY_S
    requests = posts(target)
    connection = await connect(target.address)
    try:
        for _ in MESSAGES:
            while became(reply := await connection.send(next(requests))) != "completed":
                if clock.monotonic() > deadline:
                    raise UnavailableError(f"the gateway still answers {reply.body.decode()!r}")
                await clock.sleep(_LOOK_S)
    finally:
        connection.close()
