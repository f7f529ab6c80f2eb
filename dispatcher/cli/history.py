"""Stored decisions as tuning reads them."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from dispatcher.assembly.storage import open_storage
from dispatcher.cli.period import read_time
from dispatcher.clock import SystemClock
from dispatcher.settings import Settings
from dispatcher.store.engine import Database
from dispatcher.store.history import Past, judged_decisions, past_decisions
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import StoredDecision


def entry_of(past: Past) -> Entry:
    """A decision of the store as tuning reads it."""
    return Entry(
        stored=StoredDecision(
            request_id=past.request_id,
            position=past.position,
            recorded_ms=past.recorded_ms,
            decision=past.decision,
        ),
        language=past.language,
        environment=past.environment,
        status=past.status,
        verdict=past.verdict,
        right_capability=past.right_capability,
    )


@asynccontextmanager
async def entries(settings: Settings, period: tuple[str, str]) -> AsyncIterator[AsyncIterator[Entry]]:
    """The first decision of each intent, recorded between two times as `period.read_time` takes them."""
    since, until = times(period)
    async with open_history(settings) as database:
        yield (entry_of(past) async for past in past_decisions(database, since, until))


def judged_entries(database: Database, since: int, until: int) -> AsyncIterator[Entry]:
    """The first decision of each judged intent, between two times in ms; what was said last is last."""
    return (entry_of(past) async for past in judged_decisions(database, since, until))


def open_history(settings: Settings) -> AbstractAsyncContextManager[Database]:
    """The database for somebody who looks back as far as it goes, and waits as long as that takes."""
    return open_storage(settings, statement_s=None)


def times(period: tuple[str, str]) -> tuple[int, int]:
    """Two times as `period.read_time` takes them, in ms since the epoch."""
    now = SystemClock().now()
    since, until = (read_time(text, now) for text in period)
    return since, until
