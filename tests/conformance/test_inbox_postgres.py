"""The inbox in PostgreSQL: the whole suite, and what only several processes on one table can show."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from dispatcher.errors import ConfigurationError, UnavailableError
from dispatcher.sdk.inbox import Inbox, Verdict
from dispatcher.sdk.postgres_inbox import PostgresInbox
from tests.sdk.inbox_behaviour import LastingInboxBehaviour, claim


class TestPostgresInbox(LastingInboxBehaviour):
    @pytest.fixture
    async def inbox(self, postgres_url: str) -> AsyncIterator[Inbox]:
        opened = await PostgresInbox.open(postgres_url, "tester")
        assert opened.kind == "postgres"
        yield opened
        await opened.aclose()


async def test_instances_that_start_at_once_share_one_memory(postgres_url: str) -> None:
    inboxes = await asyncio.gather(*(PostgresInbox.open(postgres_url, "tester") for _ in range(4)))

    judgements = await asyncio.gather(
        *(inbox.claim(claim(owner=f"i{number}")) for number, inbox in enumerate(inboxes) for _ in range(5))
    )
    ids = {inbox.inbox_id for inbox in inboxes}
    for inbox in inboxes:
        await inbox.aclose()

    verdicts = [judgement.verdict for judgement in judgements]
    assert verdicts.count(Verdict.RUN) == 1
    assert set(verdicts) <= {Verdict.RUN, Verdict.ELSEWHERE, Verdict.UNKNOWN}
    assert len(ids) == 1


async def test_of_two_that_take_over_a_lapsed_claim_one_runs(postgres_url: str) -> None:
    one, two = [await PostgresInbox.open(postgres_url, "tester") for _ in range(2)]
    for number in range(10):
        key = f"k{number}"
        await one.claim(claim(key, owner="gone", hold_s=0.0))

        judgements = await asyncio.gather(
            one.claim(claim(key, owner="one", idempotent=True)),
            two.claim(claim(key, owner="two", idempotent=True)),
        )

        assert {judgement.verdict for judgement in judgements} == {Verdict.RUN, Verdict.ELSEWHERE}
    await one.aclose()
    await two.aclose()


async def test_agents_of_one_database_share_nothing(postgres_url: str) -> None:
    ada, bob = [await PostgresInbox.open(postgres_url, name) for name in ("ada", "bob")]

    await ada.claim(claim())

    assert (await bob.claim(claim())).verdict is Verdict.RUN
    assert ada.inbox_id != bob.inbox_id
    await ada.aclose()
    await bob.aclose()


async def test_old_rows_are_forgotten(postgres_url: str) -> None:
    inbox = await PostgresInbox.open(postgres_url, "tester")
    await inbox.claim(claim())
    await inbox.finish("k", "me", b"done", retryable=False)
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("UPDATE agent_inbox SET touched_at = 0")
    await connection.close()

    for number in range(256):
        await inbox.claim(claim(f"other {number}"))

    assert (await inbox.claim(claim())).verdict is Verdict.RUN
    await inbox.aclose()


async def test_every_write_is_durable_whatever_the_server_says(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    name = postgres_url.rsplit("/", 1)[1]
    await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    await connection.close()

    inbox = await PostgresInbox.open(postgres_url, "tester")

    async with inbox._connection() as inside:
        assert await inside.fetchval("SHOW synchronous_commit") == "on"
    await inbox.aclose()


async def test_a_database_that_is_not_there_is_refused_with_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="can't be used"):
        await PostgresInbox.open("postgresql://nobody@127.0.0.1:1/none", "tester")


async def test_a_failing_table_is_said_to_be_unavailable_and_the_next_call_works_again(
    postgres_url: str,
) -> None:
    inbox = await PostgresInbox.open(postgres_url, "tester")
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("ALTER TABLE agent_inbox RENAME TO elsewhere")
    with pytest.raises(UnavailableError):
        await inbox.claim(claim())
    await connection.execute("ALTER TABLE elsewhere RENAME TO agent_inbox")

    assert (await inbox.claim(claim())).verdict is Verdict.RUN
    await connection.close()
    await inbox.aclose()
