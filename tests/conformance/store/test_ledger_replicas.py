"""Several replicas on one PostgreSQL."""

import asyncio
import logging
from collections import Counter
from random import Random

import asyncpg
import pytest

from dispatcher.dispatch.lifecycle.ledger import Change, KeyedRequest
from dispatcher.identifiers import ReplicaId
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.ledger_requests import AGENT, accepted, collect, offer_of, replica

LIMIT_S = 40


async def test_two_replicas_never_claim_one_attempt(shared_postgres: str):
    async def claim_all(ledger: SqlLedger, name: str) -> list[str]:
        claimed: list[str] = []
        while due := await ledger.claim_due(ReplicaId(name), {AGENT: 3}, 60):
            claimed.extend(d.attempt.task_id for d in due)
        return claimed

    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as one, replica(shared_postgres) as two:
        states = await asyncio.gather(*(accepted(one) for _ in range(60)))
        by_one, by_two = await asyncio.gather(claim_all(one, "one"), claim_all(two, "two"))
        rest = await claim_all(one, "one")

    claims = Counter([*by_one, *by_two, *rest])
    assert claims == Counter(state.tasks[0].task_id for state in states)
    assert by_one
    assert by_two


async def test_replicas_that_change_the_same_requests_in_any_order_do_not_deadlock(
    shared_postgres: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, logger="dispatcher.store.group_commit")

    async def collect_all(ledger: SqlLedger, order: list[int]) -> None:
        await asyncio.gather(*(ledger.update(ids[i], collect(f"result {i}")) for i in order))

    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as one, replica(shared_postgres) as two:
        ids = [s.request.request_id for s in await asyncio.gather(*(accepted(one) for _ in range(40)))]
        for seed in range(5):
            orders = [Random(seed + n).sample(range(40), 40) for n in (0, 100)]
            await asyncio.gather(collect_all(one, orders[0]), collect_all(two, orders[1]))

    assert "ledger.conflict" not in caplog.messages


async def test_one_of_two_replicas_wins_a_key(shared_postgres: str):
    keys = [f"key-{number}" for number in range(20)]

    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as one, replica(shared_postgres) as two:
        by_one, by_two = await asyncio.gather(
            asyncio.gather(*(one.accept(offer_of(key=key)) for key in keys)),
            asyncio.gather(*(two.accept(offer_of(key=key)) for key in reversed(keys))),
        )

    for mine, theirs in zip(by_one, reversed(by_two), strict=True):
        won, known = (mine, theirs) if isinstance(mine, Change) else (theirs, mine)
        assert isinstance(won, Change)
        assert isinstance(known, KeyedRequest)
        assert known.request_id == won.after.request.request_id


async def test_a_ledger_outlives_the_loss_of_its_connections(shared_postgres: str):
    end_others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async with asyncio.timeout(LIMIT_S), replica(shared_postgres) as ledger:
        before = await accepted(ledger)
        server = await asyncpg.connect(shared_postgres)
        await server.fetch(end_others)
        await server.close()
        after = await accepted(ledger)
        stored = await ledger.read(before.request.request_id)

    assert stored == before
    assert after.request.request_id != before.request.request_id


async def test_what_one_replica_began_another_finishes(shared_postgres: str):
    async with replica(shared_postgres) as one:
        state = await accepted(one)

    async with replica(shared_postgres) as two:
        change = await two.update(state.request.request_id, collect("done elsewhere"))

    assert change is not None
    assert change.before == state
