import asyncio

from sqlalchemy import event

from dispatcher.dispatch.lifecycle.ledger import KeyedRequest
from dispatcher.identifiers import CallerId
from dispatcher.store.engine import Database
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import CALLER, accepted, offer_of

OTHER = CallerId("other")


async def test_each_of_many_lookups_at_once_finds_its_own_request(ledger: SqlLedger):
    keys = [(caller, f"key-{number}") for caller in (CALLER, OTHER) for number in range(10)]
    known = {}
    for caller, key in keys[::2]:
        state = await accepted(ledger, offer_of(key=key, caller=caller, digest=f"{caller} {key}"))
        known[caller, key] = KeyedRequest(
            request_id=state.request.request_id, body_digest=state.request.body_digest
        )

    found = await asyncio.gather(*(ledger.find_by_key(*name) for name in [*keys, *keys]))

    assert found == [known.get(name) for name in [*keys, *keys]]


async def test_lookups_at_once_share_a_query(ledger: SqlLedger, database: Database):
    queries: list[str] = []
    engine = database.questions.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: queries.append(str(args[2])))

    await asyncio.gather(*(ledger.find_by_key(CALLER, str(number)) for number in range(100)))

    assert len([query for query in queries if query.startswith("SELECT")]) == 1
