"""Starting a dispatcher and stopping it again."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dispatcher.assembly import rules
from dispatcher.assembly.loops import loops, refresh_loads, sweep_of
from dispatcher.assembly.parts import Parts, build_parts
from dispatcher.assembly.understanding import open_planner
from dispatcher.channel.channel import Inbound
from dispatcher.dispatch.admission import Admission, AdmissionBounds
from dispatcher.dispatch.callback import Callbacks
from dispatcher.dispatch.collector import Collector
from dispatcher.dispatch.dispatcher import Dispatcher
from dispatcher.dispatch.planning import Planner
from dispatcher.dispatch.repeats import Repeats
from dispatcher.dispatch.route_query import RouteQuery
from dispatcher.dispatch.undertaker import Undertaker
from dispatcher.dispatch.watch import Watcher
from dispatcher.gateway.app import Application, create_app
from dispatcher.gateway.parts import GatewayParts
from dispatcher.identifiers import AgentId
from dispatcher.protocol.declaration import Declaration
from dispatcher.protocol.direct import DirectKeys
from dispatcher.protocol.frames import RegisterFrame
from dispatcher.protocol.link import Link
from dispatcher.registry.declaration import declared_agent
from dispatcher.registry.direct import direct_endpoint
from dispatcher.registry.entry import RegistryEntry
from dispatcher.routing.router import Ranking
from dispatcher.settings import Settings, load_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A dispatcher at work. `link` is the way for agents in this process; None with a broker."""

    settings: Settings
    app: Application
    dispatcher: Dispatcher
    parts: Parts
    link: Link | None

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the shutdown began."""
        return self.parts.signals.stopping

    def stop(self) -> None:
        """Begin the shutdown: /readyz turns to 503, new requests are refused, waiting clients get 202."""
        self.parts.signals.drain.begin()
        self.stopping.set()
        self.parts.books.waiters.release()


def local_settings(folder: Path) -> Settings:
    """Settings for tests: SQLite in `folder`, in-process channel, hashing encoder, no keys."""
    return load_settings(
        data_dir=folder,
        auth={"development": True},
        encoder={"name": "hashing"},
        broker={"url": ""},
        store={"url": ""},
    )


@asynccontextmanager
async def open_dispatcher(settings: Settings) -> AsyncIterator[Running]:
    """Build everything, start its loops, and stop them in reverse order on leaving.

    Raises ConfigurationError, with one sentence, for whatever can't work as configured.
    """
    async with AsyncExitStack() as stack:
        parts = await build_parts(settings, stack)
        await parts.access.refresh()
        await parts.calibrations.book.look()
        await parts.registrar.start()
        await refresh_loads(parts)
        await stack.enter_async_context(parts.channel.open(_inbound(parts)))
        await stack.enter_async_context(_looping(parts))
        dispatcher = _dispatcher(parts, await stack.enter_async_context(open_planner(parts)))
        yield Running(
            settings=settings,
            app=create_app(_gateway_parts(parts, dispatcher), parts.clock),
            dispatcher=dispatcher,
            parts=parts,
            link=parts.link,
        )


@asynccontextmanager
async def _looping(parts: Parts) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop) for loop in loops(parts)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def _dispatcher(parts: Parts, planner: Planner) -> Dispatcher:
    delivery = parts.settings.delivery
    bounds = AdmissionBounds(
        max_open=delivery.max_open,
        max_backlog=delivery.max_backlog,
        max_handoffs=parts.settings.routing.max_handoffs,
    )
    return Dispatcher(
        books=parts.books,
        planner=planner,
        selection=parts.selection,
        assigner=parts.assigner,
        admission=Admission(backlog=parts.view, bounds=bounds, handoffs=parts.people.waiting),
        matching=rules.match_rules(parts.settings),
    )


def _inbound(parts: Parts) -> Inbound:
    collector = Collector(books=parts.books, assigner=parts.assigner)
    entry = RegistryEntry(registrar=parts.registrar, authorize=lambda frame: _may_register(parts, frame))
    return Inbound(
        on_result=collector.on_result,
        on_registry=entry.handle,
        on_heartbeat=entry.on_heartbeat,
        on_wake=parts.books.waiters.wake,
        on_registry_change=parts.signals.registry_changed.set,
        on_hearing=lambda is_up: parts.view.hearing.set(is_up=is_up),
        on_queue_lost=sweep_of(parts).refill,
        on_dead=Undertaker(books=parts.books, assigner=parts.assigner).on_dead,
    )


async def _may_register(parts: Parts, frame: RegisterFrame) -> bool:
    """Agents in this process are ours; others need a key of their own agent."""
    return parts.link is not None or await parts.access.may_register(frame)


def _gateway_parts(parts: Parts, dispatcher: Dispatcher) -> GatewayParts:
    async def trial(agent_id: AgentId, declaration: Declaration, texts: Sequence[str]) -> Sequence[Ranking]:
        agent = declared_agent(agent_id, declaration, parts.settings.environment)
        return await parts.router.trial(agent, texts)

    collector = Collector(books=parts.books, assigner=parts.assigner)
    callbacks = Callbacks(read=parts.ledger.read, on_result=collector.on_result)
    return GatewayParts(
        dispatcher=dispatcher,
        watcher=Watcher(ledger=parts.ledger, waiters=parts.books.waiters, clock=parts.clock),
        registrar=parts.registrar,
        access=parts.access,
        trial=trial,
        ask_route=_route_query(parts).candidates,
        agent_keys=partial(_agent_keys, parts),
        accept_result=callbacks.accept,
        dead=Repeats(
            books=dispatcher.books,
            planner=dispatcher.planner,
            selection=dispatcher.selection,
            assigner=dispatcher.assigner,
        ),
        calibrations=parts.calibrations,
        judge=parts.judging.take,
        people=parts.people,
        readiness=lambda: _readiness(parts),
        rules=rules.gateway_rules(parts.settings),
        stopping=parts.signals.stopping.is_set,
    )


def _route_query(parts: Parts) -> RouteQuery:
    return RouteQuery(
        router=parts.router,
        view=parts.view,
        book=parts.direct,
        calendar=parts.clock,
        chance=random.Random(),  # noqa: S311 - spreads callers, keeps no secret
        rules=rules.route_query_rules(parts.settings),
    )


async def _agent_keys(parts: Parts, agent_id: AgentId) -> DirectKeys | None:
    agent = parts.view.agent(agent_id)
    if agent is None or direct_endpoint(agent) is None:
        return None
    return (await parts.direct.now()).keys(agent_id)


def _readiness(parts: Parts) -> Mapping[str, str | None]:
    stopping = parts.signals.stopping.is_set()
    return {
        "process": "the dispatcher is stopping" if stopping else None,
        "ledger": parts.signals.ledger.problem,
        "channel": parts.channel.problem(),
        "people": parts.people.problem(),
    }
