"""The transactions that run rules on a group of requests and store what they changed.

Whoever writes to requests, intents, tasks or attempts goes through here, so that the request's
version counts it; claims of the outbox are the one exception, and `RecentStates` knows it.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from dispatcher.dispatch.lifecycle.ledger import Change, Decide
from dispatcher.dispatch.lifecycle.session import SessionChange
from dispatcher.errors import DispatcherError, UnavailableError
from dispatcher.identifiers import RequestId
from dispatcher.store.changes import ChangeSet
from dispatcher.store.column import read_now
from dispatcher.store.database_time import DatabaseTime
from dispatcher.store.direct import DirectWriter
from dispatcher.store.engine import Database
from dispatcher.store.failure import ConflictError, LostError
from dispatcher.store.recent import RecentStates, Stored
from dispatcher.store.sessions import write_sessions
from dispatcher.store.states import load_states, read_stored

logger = logging.getLogger(__name__)


class Ruling(NamedTuple):
    """One rule to run on one request."""

    request_id: RequestId
    decide: Decide


@dataclass(frozen=True, slots=True)
class _Rulings:
    """What a group of rules made of the states they were given."""

    changes: ChangeSet
    answers: list[Change | None]
    after: Mapping[RequestId, Stored]
    sessions: Sequence[tuple[RequestId, SessionChange]]

    @property
    def changed(self) -> Sequence[RequestId]:
        """The requests of which anything is to be written."""
        return [guard.request_id for guard in self.changes.guards]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectUpdates:
    """Changes made from the states that this replica stored last, without reading anything."""

    writer: DirectWriter
    recent: RecentStates
    time: DatabaseTime
    read: Callable[[Collection[RequestId]], Awaitable[Mapping[RequestId, Stored]]]
    """The committed states."""

    async def apply(self, rulings: Sequence[Ruling]) -> list[Change | None]:
        """One answer per rule; None where nothing was done, for what was known is out of date.

        A rule that changes nothing gets None too: that may come from an old state, and nothing
        written would have shown it.
        """
        now = self.time.now_ms()
        if now is None:
            sent_at = self.time.sending()
            self.time.note(now := await self.writer.read_now(), sent_at)
        stored = {ruling.request_id: self.recent.find(ruling.request_id, now) for ruling in rulings}
        known = {request_id: found for request_id, found in stored.items() if found is not None}
        ruled = _rule(known, rulings, now)
        if ruled.sessions:
            # A session is changed under its lock, in one transaction with the request.
            alone = {request_id for request_id, _ in ruled.sessions}
            known = {request_id: found for request_id, found in known.items() if request_id not in alone}
            ruled = _rule(known, rulings, now)
        done = await self._write(ruled)
        for request_id, after in ruled.after.items():
            if request_id in done:
                self.recent.keep(after)
            elif after is not known[request_id]:
                self.recent.forget(request_id)
        return [
            answer if ruling.request_id in done else None
            for ruling, answer in zip(rulings, ruled.answers, strict=True)
        ]

    async def _write(self, ruled: _Rulings) -> frozenset[RequestId]:
        """The requests whose changes are committed. What the database refuses is left to the locked way.

        It may well be refused for having been made from an old state, and there it fails alone.
        """
        if not ruled.changes.guards:
            return frozenset()
        sent_at = self.time.sending()
        try:
            written = await self.writer.update(ruled.changes)
        except LostError:
            return await self._find_committed(ruled)
        except UnavailableError:
            raise
        except DispatcherError as error:
            logger.info("ledger.memory_refused", extra={"error": error.message})
            return frozenset()
        self.time.note(written.now_ms, sent_at)
        return written.request_ids

    async def _find_committed(self, ruled: _Rulings) -> frozenset[RequestId]:
        return _as_made(ruled, await self.read(ruled.changed))


async def update_group(
    database: Database, recent: RecentStates, rulings: Sequence[Ruling]
) -> list[Change | None]:
    """One answer per rule, committed; None where there is no such request.

    Rules run in order of arrival, those of one request each on the state the one before left.
    The time is read after the locks are held, so it never lies before a change it follows.
    """
    ruled: _Rulings | None = None
    try:
        async with database.writing() as connection:
            ruled = await _write_locked(connection, rulings)
    except UnavailableError as error:
        # Once all is written, only the commit is left to fail, and it may have been done all the same.
        if ruled is None or isinstance(error, ConflictError) or not await _is_committed(database, ruled):
            raise
    for after in ruled.after.values():
        recent.keep(after)
    return ruled.answers


async def _write_locked(connection: AsyncConnection, rulings: Sequence[Ruling]) -> _Rulings:
    stored = await load_states(connection, (ruling.request_id for ruling in rulings), locked=True)
    ruled = _rule(stored, rulings, await read_now(connection))
    await ruled.changes.write(connection)
    await write_sessions(connection, [change for _, change in ruled.sessions])
    return ruled


async def _is_committed(database: Database, ruled: _Rulings) -> bool:
    """Whether the transaction was done though no answer said so: one request as it made it tells of all."""
    return bool(_as_made(ruled, await read_stored(database, ruled.changed)))


def _as_made(ruled: _Rulings, stored: Mapping[RequestId, Stored]) -> frozenset[RequestId]:
    """The requests that are stored exactly as their changes made them."""
    return frozenset(one for one in ruled.changed if stored.get(one) == ruled.after[one])


def _rule(stored: Mapping[RequestId, Stored], rulings: Sequence[Ruling], now: int) -> _Rulings:
    current = {request_id: found.state for request_id, found in stored.items()}
    changes = ChangeSet(now)
    answers: list[Change | None] = []
    sessions: list[tuple[RequestId, SessionChange]] = []
    for ruling in rulings:
        before = current.get(ruling.request_id)
        if before is None:
            answers.append(None)
            continue
        step = ruling.decide(before, now)
        changes.add_records(step)
        if step.session is not None:
            sessions.append((ruling.request_id, step.session))
        current[ruling.request_id] = step.state
        answers.append(Change(before=before, after=step.state, now_ms=now))
    after = {request_id: changes.add(stored[request_id], state) for request_id, state in current.items()}
    return _Rulings(changes, answers, after, sessions)
