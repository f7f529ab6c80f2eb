"""Stored decisions as tuning reads them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dispatcher.assembly.storage import open_storage
from dispatcher.cli.period import read_time
from dispatcher.clock import SystemClock
from dispatcher.settings import Settings
from dispatcher.store.history import Past, past_decisions
from dispatcher.tuning.decision_log import Entry
from dispatcher.tuning.replay import Stored


def entry_of(past: Past) -> Entry:
    """A decision of the store as tuning reads it."""
    return Entry(
        stored=Stored(
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
    now = SystemClock().now()
    since, until = (read_time(text, now) for text in period)
    async with open_storage(settings) as database:
        yield (entry_of(past) async for past in past_decisions(database, since, until))
