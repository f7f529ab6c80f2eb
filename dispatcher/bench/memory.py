"""`dispatcher bench memory`: what a gateway keeps of many agents, and what an agent's process needs.

The many are registered over HTTP, as `fleet` describes them; one agent beside them does the work.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dispatcher.bench.chain import Chain, Services, running_chain
from dispatcher.bench.child import Child, running
from dispatcher.bench.counterparts import LOAD, direct_call
from dispatcher.bench.fleet import fleet
from dispatcher.bench.http_connection import connect
from dispatcher.bench.post import Target, post
from dispatcher.bench.process_time import peak_mb, resident_mb
from dispatcher.clock import Clock
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import new_id
from dispatcher.protocol.frames import RegisterFrame
from dispatcher.registry.agent import Agent

MARKS = {"gateway": 350, "agent": 60}
"""Megabytes: with 1,000 agents and the packaged encoder, and of an agent."""
LOAD_S, CALLERS = 5.0, 16
_PATIENCE_S = 60.0
_AT_ONCE = 8
_TOLD_EVERY = 200
_LEFT_OUT = {"agent": "embedded, the agent runs in the gateway's process"}
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    """How many agents are registered beside the one that works."""

    agents: int
    encoder: str


async def memory(rules: MemoryRules, services: Services | None, *, clock: Clock, say: Say) -> dict[str, Any]:
    """Start, register, work; the figures as one JSON document."""
    agents = fleet(rules.agents)
    if services is not None:
        services = replace(services, agents=tuple(agent.agent_id for agent in agents))
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dispatcher-bench-")))
        say("starting")
        server = await stack.enter_async_context(direct_call(folder))
        chain = await stack.enter_async_context(running_chain(folder, services, clock, rules.encoder))
        load = await stack.enter_async_context(running("load", folder, "-m", LOAD))
        seen = [_resident(chain)]
        started = clock.monotonic()
        await _register(agents, chain.target, f"{server.order['url']}/v1/chat", say)
        registered_s = round(clock.monotonic() - started, 1)
        seen.append(_resident(chain))
        say("working")
        figures = await _work(load, chain.target)
        seen.append(_resident(chain))
        memory_of = {"rss_mb": _stages(chain, seen), "registered_s": registered_s}
    counts = {name: figures[name] for name in ("completed", "failed")}
    return _head(rules, services) | counts | memory_of


def _head(rules: MemoryRules, services: Services | None) -> dict[str, Any]:
    return {
        "benchmark": "memory",
        "mode": "rabbitmq+postgresql" if services else "embedded",
        "encoder": rules.encoder,
        "agents": rules.agents,
        "marks_mb": MARKS,
        "left_out": {} if services else _LEFT_OUT,
    }


def _resident(chain: Chain) -> dict[str, float]:
    return {name: resident_mb(pid) for name, pid in chain.processes.items()}


def _stages(chain: Chain, seen: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """By process that has a mark: the memory at each stage, and the most there ever was."""
    stages = ("started", "registered", "worked")
    return {
        name: dict(zip(stages, (one[name] for one in seen), strict=True)) | {"peak": peak_mb(pid)}
        for name, pid in chain.processes.items()
        if name in MARKS
    }


async def _work(load: Child, target: Target) -> Mapping[str, Any]:
    order = {"do": "closed", "url": target.url, "payload_kb": 1, "concurrency": CALLERS, "seconds": LOAD_S}
    return await load.ask(order, LOAD_S + _PATIENCE_S)


async def _register(agents: Sequence[Agent], target: Target, endpoint: str, say: Say) -> None:
    """Register all, a few at a time; raises UnavailableError with what the gateway says to the contrary."""
    waiting = iter(enumerate(agents, start=1))

    async def go_on() -> None:
        connection = await connect(target.address)
        try:
            for number, agent in waiting:
                reply = await connection.send(post(target, "/v1/agents", _frame(agent, endpoint)))
                if reply.status not in {200, 201}:
                    raise UnavailableError(f"the gateway refused an agent: {reply.body.decode()}")
                if number % _TOLD_EVERY == 0:
                    say(f"{number} agents registered")
        finally:
            connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(go_on())


def _frame(agent: Agent, endpoint: str) -> bytes:
    declaration = agent.declaration.model_copy(update={"channel": "http", "endpoint": endpoint})
    frame = RegisterFrame(
        agent_id=agent.agent_id,
        instance_name="main",
        instance_id=new_id(),
        inbox="sqlite",
        inbox_id=agent.agent_id,
        declaration=declaration,
    )
    return frame.model_dump_json(exclude={"key"}).encode()
