"""A watcher that looks once at what the stub dispatcher knows."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dispatcher.dispatch.lifecycle.cursor import Cursor
from dispatcher.dispatch.lifecycle.events import Event, Look, events_after
from dispatcher.dispatch.lifecycle.request import DecisionRecord, PartialRecord, RequestState
from dispatcher.errors import OverloadedError
from dispatcher.identifiers import RequestId, TaskId


@dataclass
class StubWatcher:
    """Tells what there is, then that nothing happens; `failure` is raised at the first look."""

    states: dict[str, RequestState]
    records: tuple[DecisionRecord, ...] = ()
    pieces: dict[TaskId, tuple[PartialRecord, ...]] = field(default_factory=dict)
    failure: Exception | None = None
    is_full: bool = False

    @contextmanager
    def place(self) -> Iterator[None]:
        if self.is_full:
            raise OverloadedError("too many clients are waiting for answers", code="too_many_waiting")
        yield

    async def follow(
        self, request_id: RequestId, cursor: Cursor, quiet_s: float
    ) -> AsyncGenerator[tuple[Event, ...]]:
        if self.failure is not None:
            raise self.failure
        if cursor.is_complete:
            return
        look = Look(state=self.states[request_id], decisions=self.records, partials=self.pieces)
        events, cursor = events_after(cursor, look)
        yield events
        if not cursor.is_complete:
            yield ()
