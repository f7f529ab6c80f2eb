"""The ledger in SQL: what is asked often goes in groups, the rest in transactions of its own."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from dispatcher.clock import Clock
from dispatcher.dispatch.lifecycle.ledger import (
    NO_PACES,
    Change,
    DeadEntry,
    DeadQuery,
    Decide,
    Due,
    KeyedRequest,
    Offer,
    OutcomeCount,
)
from dispatcher.dispatch.lifecycle.request import (
    Attempt,
    DeadFrame,
    DecisionRecord,
    PartialRecord,
    RequestState,
)
from dispatcher.dispatch.lifecycle.session import Session, SessionChange
from dispatcher.identifiers import AgentId, CallerId, ReplicaId, RequestId, TaskId
from dispatcher.store import claims, dead_letters, lookups
from dispatcher.store.accepts import Accepted, Accepts, Answer, NotAccepted
from dispatcher.store.database_time import DatabaseTime
from dispatcher.store.direct import DirectWriter
from dispatcher.store.direct_postgres import PostgresWriter
from dispatcher.store.direct_sqlite import SqliteWriter
from dispatcher.store.engine import Database
from dispatcher.store.failure import ConflictError
from dispatcher.store.group_commit import GroupCommit, GroupRules
from dispatcher.store.lookups import CallerKey, find_by_keys
from dispatcher.store.publications import Publications
from dispatcher.store.recent import RecentStates
from dispatcher.store.sessions import read_session, remember, write_group
from dispatcher.store.states import read_group, read_stored
from dispatcher.store.updates import DirectUpdates, Ruling, update_group

RECENT_STATES = 2048
"""Open requests that this replica remembers, some 5 KB each; the others are read for each change."""
TRIES = 3
"""How often an offer is made again whose name was taken and is free when it is looked up."""
NOTE_WAIT_S = 0.05
"""How long a confirmed publish waits to be noted together with its request's next change."""


class SqlLedger:
    """Implements `dispatch.ledger.Ledger` on SQLite and PostgreSQL.

    Accepts and updates have a writer each, so that a burst of new requests does not hold up
    results. On SQLite they take turns with one.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        rules: GroupRules | None = None,
        recent_states: int = RECENT_STATES,
    ) -> None:
        self._database = database
        rules = rules or GroupRules()
        self._recent, self._time = RecentStates(recent_states), DatabaseTime(clock)
        self._writers = self._make_writers()
        recent, time = self._recent, self._time
        self._accepts: GroupCommit[Offer, Answer] = GroupCommit(
            Accepts(writer=self._writers[0], recent=recent, time=time).apply, rules=rules, clock=clock
        )
        self._direct: GroupCommit[Ruling, Change | None] = GroupCommit(
            DirectUpdates(
                writer=self._writers[1], recent=recent, time=time, read=partial(read_stored, database)
            ).apply,
            rules=rules,
            clock=clock,
        )
        self._updates: GroupCommit[Ruling, Change | None] = GroupCommit(
            partial(update_group, database, self._recent), rules=rules, clock=clock
        )
        self._publications = Publications(self._update, self._recent.has_ended, NOTE_WAIT_S)
        # Reads are grouped like writes: alone, one costs ten times what it costs among others.
        at_once = replace(rules, window_s=0)
        # Beside the accepts: whoever waits for a session's lock holds up nobody without a session.
        self._sessions: GroupCommit[SessionChange, None] = GroupCommit(
            partial(write_group, database), rules=at_once, clock=clock
        )
        self._reads: GroupCommit[RequestId, RequestState | None] = GroupCommit(
            partial(read_group, database), rules=at_once, clock=clock
        )
        self._keys: GroupCommit[CallerKey, KeyedRequest | None] = GroupCommit(
            partial(find_by_keys, database), rules=at_once, clock=clock
        )

    def _make_writers(self) -> tuple[DirectWriter, DirectWriter]:
        """For accepts and updates. Two on SQLite would read again after every turn what the other wrote."""
        if not self._database.is_postgres:
            writer = SqliteWriter(self._database)
            return writer, writer
        first, second = (PostgresWriter(self._database.alone, self._start_anew) for _ in range(2))
        return first, second

    def _start_anew(self) -> None:
        """After a failover versions are given again, to other changes, and another clock tells the time."""
        self._recent.clear()
        self._time.forget()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read and write inside the block; on leaving, commit what is queued."""
        try:
            async with (
                self._keys.running(),
                self._reads.running(),
                self._updates.running(),
                self._direct.running(),
                self._sessions.running(),
                self._accepts.running(),
            ):
                yield
        finally:
            for writer in self._writers:
                await writer.close()

    async def accept(self, offer: Offer) -> Change | KeyedRequest:
        """See `Ledger.accept`."""
        for _ in range(TRIES):
            answer = await self._accepts.offer(offer)
            if isinstance(answer, Accepted):
                if answer.session is not None:
                    # Waits however long the group before is stuck: a refused change would be lost.
                    await remember(self._sessions.put, answer.session)
                return answer.change
            if isinstance(answer, KeyedRequest):
                return answer
            if found := await self._find(offer, answer):
                return found
        raise ConflictError("requests with that key come and go")

    async def _find(self, offer: Offer, answer: NotAccepted) -> Change | KeyedRequest | None:
        """What an offer's name belongs to; None where that was deleted meanwhile."""
        known = None
        if offer.idempotency_key is not None:
            known = await self.find_by_key(offer.caller, offer.idempotency_key)
        if known is None and (state := await self.read(offer.request_id)) is not None:
            known = KeyedRequest(request_id=offer.request_id, body_digest=state.request.body_digest)
        if known is None or known.request_id != offer.request_id or answer is NotAccepted.TAKEN:
            return known
        stored = await self.read(offer.request_id)
        return Change(before=None, after=stored, now_ms=stored.request.created_ms) if stored else None

    async def update(self, request_id: RequestId, decide: Decide) -> Change | None:
        """See `Ledger.update`."""
        return await self._publications.update(request_id, decide)

    async def mark_published(self, attempt: Attempt) -> None:
        """See `Ledger.mark_published`."""
        await self._publications.note(attempt)

    async def _update(self, request_id: RequestId, decide: Decide) -> Change | None:
        ruling = Ruling(request_id, decide)
        if self._recent.knows(request_id):
            change = await self._direct.put(ruling)
            if change is not None:
                return change
        return await self._updates.put(ruling)

    async def read(self, request_id: RequestId) -> RequestState | None:
        """See `Ledger.read`."""
        return await self._reads.put(request_id)

    async def read_decisions(self, request_id: RequestId) -> tuple[DecisionRecord, ...]:
        """See `Ledger.read_decisions`."""
        return await lookups.read_decisions(self._database, request_id)

    async def read_partials(
        self, request_id: RequestId, task_id: TaskId, start: tuple[int, int], limit: int
    ) -> tuple[PartialRecord, ...]:
        """See `Ledger.read_partials`."""
        return await lookups.read_partials(self._database, (request_id, task_id), start, limit)

    async def read_session(self, caller: CallerId, session_id: str) -> Session:
        """See `Ledger.read_session`."""
        return await read_session(self._database, caller, session_id)

    async def bury(self, frame: DeadFrame) -> None:
        """See `Ledger.bury`."""
        await dead_letters.bury(self._database, frame)

    async def dead(self, wanted: DeadQuery) -> Sequence[DeadEntry]:
        """See `Ledger.dead`."""
        return await dead_letters.dead(self._database, wanted)

    async def find_by_key(self, caller: CallerId, idempotency_key: str) -> KeyedRequest | None:
        """See `Ledger.find_by_key`."""
        return await self._keys.offer(CallerKey(caller, idempotency_key))

    async def claim_due(
        self,
        replica: ReplicaId,
        room: Mapping[AgentId, int],
        claim_s: float,
        *,
        paces: Mapping[AgentId, float] = NO_PACES,
    ) -> tuple[Due, ...]:
        """See `Ledger.claim_due`."""
        return await claims.claim_due(self._database, replica, room, claim_s, paces)

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
