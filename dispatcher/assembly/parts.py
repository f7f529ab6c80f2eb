"""Everything a running dispatcher is made of, built from settings but not yet started."""

import asyncio
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from threadpoolctl import threadpool_limits

from dispatcher.assembly import rules
from dispatcher.assembly.calibrating import Calibrating, calibrating
from dispatcher.assembly.drain import Drain
from dispatcher.assembly.encoders import EncoderInUse, open_encoder
from dispatcher.assembly.storage import open_storage
from dispatcher.channel.channel import Channel
from dispatcher.channel.composite import CompositeChannel
from dispatcher.channel.http import HttpChannel, HttpRules
from dispatcher.channel.http_call import HttpCaller
from dispatcher.channel.in_process import InProcessChannel
from dispatcher.channel.rabbitmq import RabbitChannel
from dispatcher.clock import SystemClock
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.judging import Judging
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Ledger
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.people import People
from dispatcher.dispatch.selection import Selection
from dispatcher.dispatch.waiters import Waiters
from dispatcher.identifiers import AgentId, ReplicaId, new_id
from dispatcher.observe.readiness import Watched
from dispatcher.protocol.link import Link
from dispatcher.registry.access_book import AccessBook
from dispatcher.registry.agent import Liveness
from dispatcher.registry.direct_book import DirectBook
from dispatcher.registry.registrar import Effects, Registrar
from dispatcher.registry.success import SuccessRules
from dispatcher.registry.view import LiveView
from dispatcher.routing.batcher import TextEncoder
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.index import ExactIndex
from dispatcher.routing.reindex import ReindexingRouter
from dispatcher.routing.router import Router
from dispatcher.settings import Settings
from dispatcher.store.access import SqlAccess
from dispatcher.store.agents import SqlAgents
from dispatcher.store.direct_secret import SqlDirectSecret
from dispatcher.store.engine import Database
from dispatcher.store.group_commit import GroupRules
from dispatcher.store.handoffs import SqlHandoffs
from dispatcher.store.judgements import SqlJudgements
from dispatcher.store.ledger import SqlLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What tells loops and health checks that something happened."""

    drain: Drain
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    registry_changed: asyncio.Event = field(default_factory=asyncio.Event)
    ledger: Watched = field(default_factory=Watched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One replica's parts."""

    settings: Settings
    clock: SystemClock
    signals: Signals
    ledger: Ledger
    access: AccessBook
    direct: DirectBook
    view: LiveView
    encoder: EncoderInUse
    calibrations: Calibrating
    channel: Channel
    link: Link | None
    """The way for agents in this process; None with a broker."""
    http: HttpChannel
    registrar: Registrar
    books: Bookkeeper
    judging: Judging
    people: People
    selection: Selection
    assigner: Assigner

    @property
    def router(self) -> ReindexingRouter:
        """What ranks and decides, whichever encoder is in use."""
        return self.encoder.router


async def build_parts(settings: Settings, stack: AsyncExitStack) -> Parts:
    """Build all parts; what has to be closed again is entered into `stack`."""
    clock, replica = SystemClock(), ReplicaId(new_id())
    # One small product at a time: more BLAS threads only fight for the cores (p95 3 -> 250 ms).
    stack.enter_context(threadpool_limits(limits=1))
    database = await stack.enter_async_context(open_storage(settings))
    ledger = await _open_ledger(settings, database, clock, stack)
    access = AccessBook(SqlAccess(database), clock, development=settings.auth.development)
    view = _view(settings, clock)
    encoder = await _open_encoder(settings, view, clock, stack)
    primary = _primary(settings, view, replica, clock)
    drain = Drain(seconds=settings.server.drain_s, clock=clock)
    http = _http(settings, view, clock, drain)
    channel = CompositeChannel(primary, {"http": http}, partial(_declared_channel, view))
    selection = _selection(settings, encoder, view, access, clock)
    calibrations = calibrating(database, encoder.router)
    registrar = _registrar(settings, SqlAgents(database), view, calibrations, (channel, http))
    return Parts(
        settings=settings,
        clock=clock,
        signals=Signals(drain=drain),
        ledger=ledger,
        access=access,
        direct=DirectBook(SqlDirectSecret(database), rules.ticket_rules(settings), clock),
        view=view,
        encoder=encoder,
        calibrations=calibrations,
        channel=channel,
        link=primary.link() if isinstance(primary, InProcessChannel) else None,
        http=http,
        registrar=registrar,
        books=_books(settings, ledger, view, channel, replica, clock),
        judging=Judging(repository=SqlJudgements(database), known=lambda: registrar.contracts),
        people=_people(database, ledger, primary),
        selection=selection,
        assigner=rules.assigner(settings, view, selection, replica, clock),
    )


def _books(
    settings: Settings,
    ledger: Ledger,
    view: LiveView,
    channel: Channel,
    replica: ReplicaId,
    clock: SystemClock,
) -> Bookkeeper:
    return Bookkeeper(
        ledger=ledger,
        outbox=Outbox(replica=replica, limit=settings.store.queue_limit, clock=clock),
        loads=view,
        waiters=Waiters(ledger=ledger, clock=clock, limit=settings.server.max_waiting),
        channel=channel,
    )


def _selection(
    settings: Settings, encoder: EncoderInUse, view: LiveView, access: AccessBook, clock: SystemClock
) -> Selection:
    return Selection(
        router=encoder.router,
        directory=view,
        grants=access.grants,
        calendar=clock,
        fallback=rules.fallback(settings),
    )


def _people(database: Database, ledger: SqlLedger, primary: InProcessChannel | RabbitChannel) -> People:
    queue = primary if isinstance(primary, RabbitChannel) else None
    return People(repository=SqlHandoffs(database), reads=ledger, queue=queue)


async def _open_ledger(
    settings: Settings, database: Database, clock: SystemClock, stack: AsyncExitStack
) -> SqlLedger:
    ledger = SqlLedger(
        database,
        clock=clock,
        rules=GroupRules(capacity=settings.store.queue_limit),
        recent_states=settings.store.recent_states,
    )
    await stack.enter_async_context(ledger.running())
    return ledger


def _view(settings: Settings, clock: SystemClock) -> LiveView:
    success = SuccessRules(half_life_s=settings.liveness.success_half_life_s)
    return LiveView(rules=rules.liveness_rules(settings), clock=clock, success=success)


async def _open_encoder(
    settings: Settings, view: LiveView, clock: SystemClock, stack: AsyncExitStack
) -> EncoderInUse:
    def make_router(encoder: TextEncoder) -> Router:
        return Router(
            encoder=encoder,
            directory=view,
            make_index=FaissIndex if settings.routing.index == "faiss" else ExactIndex,
            rules=rules.routing_rules(settings),
            clock=clock,
        )

    encoder = EncoderInUse(await open_encoder(settings.encoder), make_router)
    stack.callback(encoder.close)
    return encoder


def _http(settings: Settings, view: LiveView, clock: SystemClock, drain: Drain) -> HttpChannel:
    chosen = settings.http
    caller = HttpCaller(rules.call_rules(settings), rules.address_policy(settings))
    limits = HttpRules(calls=chosen.calls, calls_per_agent=chosen.calls_per_agent)
    endpoint_of = partial(_endpoint, view)
    return HttpChannel(endpoint_of, caller, rules=limits, close_within_s=drain.left_s, clock=clock)


def _endpoint(view: LiveView, agent_id: AgentId) -> str | None:
    agent = view.agent(agent_id)
    return agent.declaration.endpoint if agent else None


def _declared_channel(view: LiveView, agent_id: AgentId) -> str | None:
    agent = view.agent(agent_id)
    return agent.declaration.channel if agent else None


def _primary(
    settings: Settings, view: LiveView, replica: ReplicaId, clock: SystemClock
) -> InProcessChannel | RabbitChannel:
    if settings.broker_url is None:
        return InProcessChannel(clock=clock)
    served = partial(_served, view)
    return RabbitChannel(settings.broker_url, rules.topology(settings), replica, served=served, clock=clock)


def _served(view: LiveView) -> Collection[AgentId]:
    """The agents that should be at their queues now."""
    queued = (agent.agent_id for agent in view.agents() if agent.declaration.channel != "http")
    return [agent_id for agent_id in queued if view.status(agent_id).liveness is not Liveness.OFFLINE]


def _registrar(
    settings: Settings,
    repository: SqlAgents,
    view: LiveView,
    routing: Calibrating,
    channels: tuple[CompositeChannel, HttpChannel],
) -> Registrar:
    channel, http = channels
    return Registrar(
        repository=repository,
        view=view,
        rules=rules.admission_rules(settings),
        effects=Effects(
            on_change=routing.follow,
            examine=routing.router.examine,
            prepare=channel.prepare_as,
            announce=channel.announce_registry_change,
            reach=http.reach,
        ),
    )
