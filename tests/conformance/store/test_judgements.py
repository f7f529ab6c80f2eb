"""Judgements are kept with their request, the newest of each intent, and go with it."""

from collections.abc import Sequence

from sqlalchemy import delete, select

from dispatcher.dispatch.lifecycle.judgement import Given, Judgement, Verdict
from dispatcher.identifiers import Capability, RequestId, new_id
from dispatcher.store.engine import Database
from dispatcher.store.judgements import SqlJudgements
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.retention import prune
from dispatcher.store.tables import feedback, requests
from tests.conformance.store.ledger_requests import CALLER, accepted, finish

RIGHT = Judgement(position=0, verdict=Verdict.RIGHT)
WRONG = Judgement(
    position=1, verdict=Verdict.WRONG_CAPABILITY, capability=Capability("refund"), comment="退款\0!"
)


async def _record(database: Database, request_id: RequestId, *judgements: Judgement, by: str = "boss"):
    given = Given(request_id=request_id, caller=CALLER, given_by=by, judgements=judgements)
    await SqlJudgements(database).record(given)


async def _kept(database: Database) -> Sequence[tuple[object, ...]]:
    names = ("request_id", "position", "caller", "verdict", "capability", "given_by", "comment")
    query = select(*(feedback.c[name] for name in names)).order_by(feedback.c.position)
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def test_what_is_said_is_kept_as_it_was_said(ledger: SqlLedger, database: Database):
    request_id = (await accepted(ledger)).request.request_id

    await _record(database, request_id, WRONG, RIGHT)

    assert await _kept(database) == [
        (request_id, 0, CALLER, "right", None, "boss", ""),
        (request_id, 1, CALLER, "wrong_capability", "refund", "boss", "退款\ufffd!"),
    ]
    async with database.reading() as connection:
        query = select(feedback.c.recorded_ms - requests.c.created_ms).join(requests)
        ages_ms = (await connection.execute(query)).scalars().all()
    assert all(0 <= age_ms < 60_000 for age_ms in ages_ms)


async def test_a_later_judgement_takes_the_place_of_its_intents_earlier_one(
    ledger: SqlLedger, database: Database
):
    request_id = (await accepted(ledger)).request.request_id
    await _record(database, request_id, RIGHT, WRONG)

    await _record(database, request_id, Judgement(position=1, verdict=Verdict.OUT_OF_SCOPE), by="shop")

    assert await _kept(database) == [
        (request_id, 0, CALLER, "right", None, "boss", ""),
        (request_id, 1, CALLER, "out_of_scope", None, "shop", ""),
    ]


async def test_nothing_is_kept_of_a_request_that_was_deleted_meanwhile(ledger: SqlLedger, database: Database):
    deleted = (await accepted(ledger)).request.request_id
    async with database.writing() as connection:
        await connection.execute(delete(requests).where(requests.c.request_id == deleted))

    await _record(database, deleted, RIGHT, WRONG)
    await _record(database, RequestId(new_id()), RIGHT)

    assert await _kept(database) == []


async def test_judgements_go_with_their_request(ledger: SqlLedger, database: Database):
    old, recent = [(await accepted(ledger)).request.request_id for _ in range(2)]
    await ledger.update(old, finish(days_ago=91))
    for request_id in (old, recent):
        await _record(database, request_id, RIGHT)

    await prune(database, {"requests": 90})

    assert [row[0] for row in await _kept(database)] == [recent]
