"""Requests of other days, with the decision that was made for each of their intents."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event, update

from dispatcher.dispatch.lifecycle.judgement import Given, Judgement
from dispatcher.dispatch.lifecycle.ledger import Offer, Step
from dispatcher.dispatch.lifecycle.request import DecisionRecord
from dispatcher.identifiers import RequestId
from dispatcher.records import replace
from dispatcher.routing.record import decision_document
from dispatcher.store.engine import Database
from dispatcher.store.judgements import SqlJudgements
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.tables import decisions, feedback, requests
from tests.conformance.store.ledger_requests import CALLER, accepted, finish, offer_of
from tests.tuning.records import BUSY_BUT_GOOD, decision


async def decided(ledger: SqlLedger, database: Database, recorded_ms: int, *, ends: bool = True) -> RequestId:
    """A request with decisions (0, 1), (0, 2), a retry, and (1, 1), recorded and ended at that time."""
    state = await accepted(ledger, _with_decisions(offer_of()))
    request_id = state.request.request_id
    if ends:
        await ledger.update(request_id, finish())
    async with database.writing() as connection:
        one = decisions.c.request_id == request_id
        await connection.execute(update(decisions).where(one).values(recorded_ms=recorded_ms))
        if ends:
            ended = update(requests).where(requests.c.request_id == request_id)
            await connection.execute(ended.values(finished_ms=recorded_ms))
    return request_id


async def judged(
    database: Database, request_id: RequestId, judgement: Judgement, recorded_ms: int | None = None
) -> None:
    """Let somebody say this, at that time or now."""
    given = Given(request_id=request_id, caller=CALLER, given_by="boss", judgements=(judgement,))
    await SqlJudgements(database).record(given)
    if recorded_ms is not None:
        this = (feedback.c.request_id == request_id, feedback.c.position == judgement.position)
        async with database.writing() as connection:
            await connection.execute(update(feedback).where(*this).values(recorded_ms=recorded_ms))


@contextmanager
def statements(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """What is asked of the database meanwhile, with parameters."""
    asked: list[tuple[str, Any]] = []

    def note(
        _connection: Connection, _cursor: object, statement: str, parameters: Any, *_more: object
    ) -> None:
        asked.append((statement, parameters))

    event.listen(database.reads.sync_engine, "before_cursor_execute", note)
    yield asked
    event.remove(database.reads.sync_engine, "before_cursor_execute", note)


def _with_decisions(offer: Offer) -> Offer:
    def build(now: int) -> Step:
        document = decision_document(decision(BUSY_BUT_GOOD))
        made = tuple(
            DecisionRecord(request_id=offer.request_id, position=at, number=number, document=document)
            for at, number in ((0, 1), (0, 2), (1, 1))
        )
        return replace(offer.build(now), decisions=made)

    return replace(offer, build=build)
