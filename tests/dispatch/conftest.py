"""The edges of dispatch over local parts: a SQLite ledger and the in-process channel."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dispatcher.channel.channel import Inbound
from dispatcher.channel.in_process import InProcessChannel
from dispatcher.clock import SystemClock
from dispatcher.dispatch.bookkeeper import Bookkeeper
from dispatcher.dispatch.collector import Collector
from dispatcher.dispatch.lifecycle.accept import Arrival, first_step
from dispatcher.dispatch.lifecycle.assign import Assigner
from dispatcher.dispatch.lifecycle.ledger import Change, Decide, Offer
from dispatcher.dispatch.lifecycle.request import ChatMessage, RequestState
from dispatcher.dispatch.lifecycle.transition import IllegalTransitionError
from dispatcher.dispatch.outbox import Outbox
from dispatcher.dispatch.relay import Relay, RelayRules
from dispatcher.dispatch.sweep import Steadiness, Sweep
from dispatcher.dispatch.waiters import Waiters
from dispatcher.errors import UnavailableError
from dispatcher.identifiers import AgentId, CallerId, Capability, ReplicaId, RequestId, new_id
from dispatcher.intents.plan import Intent, Plan
from dispatcher.store.engine import open_engine
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.schema import upgrade
from tests.dispatch.builders import Agents, Loads, assigner, intent


class FaultyLedger(SqlLedger):
    """The real ledger, but changing `refused` fails as a fault in a rule would.

    The next `unreachable` reads fail as without the database.
    """

    refused: RequestId | None = None
    unreachable: int = 0

    async def read(self, request_id: RequestId) -> RequestState | None:
        if self.unreachable:
            self.unreachable -= 1
            raise UnavailableError("planted")
        return await super().read(request_id)

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        if request_id == self.refused:
            raise IllegalTransitionError("planted")
        return await super().update(request_id, decide)


@dataclass
class Chain:
    """One replica without HTTP, understanding and loops; tests move it step by step."""

    ledger: FaultyLedger
    channel: InProcessChannel
    by: Assigner
    loads: Loads

    def __post_init__(self) -> None:
        clock = SystemClock()
        self.granted: frozenset[Capability] | None = None
        self.waiters = Waiters(ledger=self.ledger, clock=clock, limit=2)
        self.outbox = Outbox(replica=ReplicaId("r1"), limit=10, clock=clock)
        self.books = Bookkeeper(
            ledger=self.ledger,
            outbox=self.outbox,
            loads=self.loads,
            waiters=self.waiters,
            channel=self.channel,
        )
        self.collector = Collector(books=self.books, assigner=self.by)
        self.relay = Relay(
            outbox=self.outbox,
            books=self.books,
            channel=self.channel,
            assigner=self.by,
            capacities=self.loads,
            grants=lambda _: self.granted,
            clock=clock,
            rules=RelayRules(reply_to="results"),
        )
        self.sweep = Sweep(
            books=self.books,
            assigner=self.by,
            agents=self.loads,
            lost_after_s=0,
            steadiness=Steadiness(clock, 0),
        )

    async def accept(self, *intents: Intent, by: Assigner | None = None) -> Change:
        """Accept a request of these intents."""
        request_id = RequestId(new_id())
        arrival = Arrival(
            request_id=request_id,
            caller=CallerId("shop"),
            message=ChatMessage(message="a message", environment="production"),
            plan=Plan(intents=intents or (intent(0),), language="en"),
        )
        offer = Offer(
            request_id=request_id,
            caller=arrival.caller,
            idempotency_key=None,
            body_digest="",
            build=lambda now: first_step(arrival, now, by or self.by),
        )
        change = await self.books.accept(offer)
        assert isinstance(change, Change)
        return change


@asynccontextmanager
async def open_chain(folder: Path, agents: Agents) -> AsyncIterator[Chain]:
    """A chain whose ledger is a fresh SQLite file."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    await upgrade(url)
    async with open_engine(url) as database:
        ledger = FaultyLedger(database, clock=SystemClock())
        async with ledger.running():
            loads = Loads()
            by = assigner(agents, loads=loads)
            chain = Chain(ledger=ledger, channel=InProcessChannel(), by=by, loads=loads)
            inbound = Inbound(
                on_result=chain.collector.on_result,
                on_registry=_no_registry,
                on_heartbeat=lambda _: None,
                on_wake=chain.waiters.wake,
                on_registry_change=lambda: None,
            )
            async with chain.channel.open(inbound):
                yield chain


async def _no_registry(body: bytes) -> bytes:
    return body


@pytest.fixture
async def chain(tmp_path: Path) -> AsyncIterator[Chain]:
    """A chain with two agents, `a1` being asked first; only `a1` has a queue."""
    async with open_chain(tmp_path, Agents("a1", "a2")) as made:
        await made.channel.prepare(AgentId("a1"))
        yield made
