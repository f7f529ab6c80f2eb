"""One secret for all replicas, however they come to it."""

import asyncio
import secrets

from sqlalchemy import delete

from dispatcher.store.direct_secret import SqlDirectSecret
from dispatcher.store.engine import open_engine
from dispatcher.store.tables import direct_secret


async def test_replicas_that_find_none_agree_on_one(ledger_url: str):
    async with open_engine(ledger_url) as one, open_engine(ledger_url) as other:
        replicas = [SqlDirectSecret(database) for database in (one, other, one, other)]
        made = await asyncio.gather(*(replica.secret(secrets.token_bytes(32)) for replica in replicas))

    assert len({stored.secret for stored in made}) == 1


async def test_it_stays(ledger_url: str):
    async with open_engine(ledger_url) as database:
        first = await SqlDirectSecret(database).secret(b"\x00\xff" * 16)
        again = await SqlDirectSecret(database).secret(b"another")

    assert (first.secret, again.secret) == (b"\x00\xff" * 16, first.secret)
    assert 0 <= again.now_ms - first.now_ms < 60_000


async def test_who_removes_it_ends_all_tickets(ledger_url: str):
    async with open_engine(ledger_url) as database:
        first = await SqlDirectSecret(database).secret(b"1" * 32)
        async with database.writing() as connection:
            await connection.execute(delete(direct_secret))
        second = await SqlDirectSecret(database).secret(b"2" * 32)

    assert (first.secret, second.secret) == (b"1" * 32, b"2" * 32)
