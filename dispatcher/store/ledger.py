"""The ledger in SQL: what is asked often goes in groups, the rest in transactions of its own."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from dispatcher.clock import Clock
from dispatcher.dispatch.ledger import Change, Decide, Due, KeyedRequest, Offer, OutcomeCount
from dispatcher.dispatch.request import Attempt, DecisionRecord, RequestState
from dispatcher.identifiers import AgentId, CallerId, ReplicaId, RequestId
from dispatcher.store import claims, lookups
from dispatcher.store.accepts import accept_group
from dispatcher.store.engine import Database
from dispatcher.store.group_commit import GroupCommit, GroupRules
from dispatcher.store.lookups import CallerKey, find_by_keys
from dispatcher.store.states import read_group
from dispatcher.store.updates import Ruling, publication, update_group


class SqlLedger:
    """Implements `dispatch.ledger.Ledger` on SQLite and PostgreSQL.

    Accepts and updates have a writer each, so that a burst of new requests does not hold up
    results. On SQLite the two take turns on the one writing connection.
    """

    def __init__(self, database: Database, *, clock: Clock, rules: GroupRules | None = None) -> None:
        self._database = database
        rules = rules or GroupRules()
        self._accepts: GroupCommit[Offer, Change | KeyedRequest] = GroupCommit(
            partial(accept_group, database), rules=rules, clock=clock
        )
        self._updates: GroupCommit[Ruling, Change | None] = GroupCommit(
            partial(update_group, database), rules=rules, clock=clock
        )
        # Reads are grouped like writes: alone, one costs ten times what it costs among others.
        at_once = replace(rules, window_s=0)
        self._reads: GroupCommit[RequestId, RequestState | None] = GroupCommit(
            partial(read_group, database), rules=at_once, clock=clock
        )
        self._keys: GroupCommit[CallerKey, KeyedRequest | None] = GroupCommit(
            partial(find_by_keys, database), rules=at_once, clock=clock
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read and write inside the block; on leaving, commit what is queued."""
        async with (
            self._keys.running(),
            self._reads.running(),
            self._updates.running(),
            self._accepts.running(),
        ):
            yield

    async def accept(self, offer: Offer) -> Change | KeyedRequest:
        """See `Ledger.accept`."""
        return await self._accepts.offer(offer)

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """See `Ledger.update`."""
        return await self._updates.put(Ruling(request_id, decide))

    async def mark_published(self, attempt: Attempt) -> None:
        """See `Ledger.mark_published`."""
        await self._updates.put(Ruling(attempt.request_id, publication(attempt)))

    async def read(self, request_id: RequestId) -> RequestState | None:
        """See `Ledger.read`."""
        return await self._reads.put(request_id)

    async def read_decisions(self, request_id: RequestId) -> tuple[DecisionRecord, ...]:
        """See `Ledger.read_decisions`."""
        return await lookups.read_decisions(self._database, request_id)

    async def find_by_key(self, caller: CallerId, idempotency_key: str) -> KeyedRequest | None:
        """See `Ledger.find_by_key`."""
        return await self._keys.put(CallerKey(caller, idempotency_key))

    async def claim_due(
        self, replica: ReplicaId, room: Mapping[AgentId, int], claim_s: float
    ) -> tuple[Due, ...]:
        """See `Ledger.claim_due`."""
        return await claims.claim_due(self._database, replica, room, claim_s)

    async def due_agents(self) -> frozenset[AgentId]:
        """See `Ledger.due_agents`."""
        return await claims.due_agents(self._database)

    async def overdue(self, limit: int) -> tuple[RequestId, ...]:
        """See `Ledger.overdue`."""
        return await lookups.overdue(self._database, limit)

    async def unanswered(self, agents: Collection[AgentId], age_s: float, limit: int) -> Sequence[Attempt]:
        """See `Ledger.unanswered`."""
        return await lookups.unanswered(self._database, agents, age_s, limit)

    async def open_attempts(self) -> Mapping[AgentId, int]:
        """See `Ledger.open_attempts`."""
        return await lookups.open_attempts(self._database)

    async def published_attempts(self) -> Mapping[AgentId, int]:
        """See `Ledger.published_attempts`."""
        return await lookups.published_attempts(self._database)

    async def outcome_counts(self, half_life_s: float) -> Sequence[OutcomeCount]:
        """See `Ledger.outcome_counts`."""
        return await lookups.outcome_counts(self._database, half_life_s)
