import pytest
from sqlalchemy import Table, func, select

from dispatcher.dispatch.lifecycle.request import RequestState
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import CallerId
from dispatcher.store.engine import Database
from dispatcher.store.ledger import SqlLedger
from dispatcher.store.retention import Forgotten, forget, prune
from dispatcher.store.tables import attempts, decisions, intents, requests, results, tasks
from tests.conformance.store.ledger_requests import accepted, collect, finish, offer_of


async def ended(ledger: SqlLedger, days_ago: float, caller: str = "shop") -> RequestState:
    state = await accepted(ledger, offer_of(caller=CallerId(caller)))
    await ledger.update(state.request.request_id, collect("ok"))
    await ledger.update(state.request.request_id, finish(days_ago=days_ago))
    return state


async def count(database: Database, table: Table) -> int:
    async with database.reading() as connection:
        return (await connection.execute(select(func.count()).select_from(table))).scalar_one()


async def test_requests_that_ended_long_ago_go_with_everything_below_them(
    ledger: SqlLedger, database: Database
):
    for _ in range(5):
        await ended(ledger, 31)
    recent = await ended(ledger, 29)

    deleted = await prune(database, {"requests": 30}, batch=2)

    assert deleted == {"requests": 5}
    assert await ledger.read(recent.request.request_id) is not None
    counts = [await count(database, t) for t in (requests, intents, tasks, attempts, results, decisions)]
    assert counts == [1, 2, 2, 2, 1, 2]


async def test_decisions_and_results_may_go_earlier_than_their_requests(
    ledger: SqlLedger, database: Database
):
    old = await ended(ledger, 8)
    recent = await ended(ledger, 1)

    deleted = await prune(database, {"decisions": 7, "results": 7})

    assert deleted == {"decisions": 2, "results": 1}
    assert await ledger.read(old.request.request_id) is not None
    assert await ledger.read_decisions(old.request.request_id) == ()
    assert len(await ledger.read_decisions(recent.request.request_id)) == 2


async def test_running_requests_are_never_pruned(ledger: SqlLedger, database: Database):
    await accepted(ledger)

    deleted = await prune(database, {"requests": 0, "decisions": 0, "results": 0})

    assert deleted == {"decisions": 0, "results": 0, "requests": 0}


async def test_a_retention_for_an_unknown_table_is_refused(database: Database):
    with pytest.raises(ConfigurationError, match="agents"):
        await prune(database, {"agents": 1})


async def test_a_user_is_forgotten_with_everything_of_theirs(ledger: SqlLedger, database: Database):
    await ended(ledger, 0)
    await ended(ledger, 0, caller="other")
    running = await accepted(ledger)

    forgotten = await forget(database, "user-1")

    assert forgotten == Forgotten(deleted=2, still_open=1)
    assert await count(database, results) == 0
    assert await ledger.read(running.request.request_id) is not None


async def test_a_user_can_be_forgotten_for_one_caller_alone(ledger: SqlLedger, database: Database):
    await ended(ledger, 0)
    other = await ended(ledger, 0, caller="other")

    forgotten = await forget(database, "user-1", CallerId("shop"))

    assert forgotten == Forgotten(deleted=1, still_open=0)
    assert await ledger.read(other.request.request_id) is not None


async def test_other_users_are_left_alone(ledger: SqlLedger, database: Database):
    state = await ended(ledger, 0)

    forgotten = await forget(database, "user-2")

    assert forgotten == Forgotten(deleted=0, still_open=0)
    assert await ledger.read(state.request.request_id) is not None
