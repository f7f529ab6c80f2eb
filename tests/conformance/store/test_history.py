"""Looking back: which decisions are found, in which order, and how little else is read for it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from dispatcher.cli.history import open_history
from dispatcher.dispatch.lifecycle.judgement import Judgement, Verdict
from dispatcher.identifiers import Capability
from dispatcher.settings import Settings, StoreSettings
from dispatcher.store.engine import Database
from dispatcher.store.history import Past, judged_decisions, past_decisions
from dispatcher.store.ledger import SqlLedger
from tests.conformance.store.past_requests import decided, judged, statements
from tests.tuning.records import BUSY_BUT_GOOD, decision

LATEST_MS = 2**62
RIGHT = Judgement(position=0, verdict=Verdict.RIGHT)
WRONG = Judgement(position=1, verdict=Verdict.WRONG_CAPABILITY, capability=Capability("order.query"))


async def _found(source: AsyncIterator[Past]) -> Sequence[tuple[str, int, int]]:
    return [(past.request_id, past.position, past.number) async for past in source]


async def test_any_number_of_decisions_comes_page_by_page_each_once(ledger: SqlLedger, database: Database):
    ids = [await decided(ledger, database, 1_000 + at) for at in range(5)]
    expected = [(one, at, number) for one in ids for at, number in ((0, 1), (0, 2), (1, 1))]

    for page in (1, 2, 3, 7, 15, 16):
        found = await _found(past_decisions(database, 0, LATEST_MS, first_only=False, page=page))
        assert found == expected

    firsts = await _found(past_decisions(database, 0, LATEST_MS, page=3))
    assert firsts == [one for one in expected if one[2] == 1]


async def test_a_decision_comes_with_its_request_its_task_and_what_was_said(
    ledger: SqlLedger, database: Database
):
    request_id = await decided(ledger, database, 1_000)
    await judged(database, request_id, WRONG)

    first, second = [past async for past in past_decisions(database, 0, LATEST_MS)]

    assert (first.verdict, first.right_capability, first.status) == (None, None, "open")
    assert second == Past(
        request_id=request_id,
        position=1,
        number=1,
        caller=first.caller,
        language="zh",
        environment="production",
        recorded_ms=1_000,
        decision=decision(BUSY_BUT_GOOD),
        status="waiting",
        verdict=Verdict.WRONG_CAPABILITY,
        right_capability=Capability("order.query"),
    )


async def test_a_time_begins_with_its_first_millisecond_and_ends_before_its_last(
    ledger: SqlLedger, database: Database
):
    ids = [await decided(ledger, database, recorded_ms) for recorded_ms in (999, 1_000, 1_999, 2_000)]

    found = await _found(past_decisions(database, 1_000, 2_000))

    assert {one for one, _, _ in found} == set(ids[1:3])
    assert await _found(past_decisions(database, 2_000, 2_000)) == []


async def test_what_is_still_open_is_found_and_no_gateways_clock_matters(
    ledger: SqlLedger, database: Database
):
    """The order of ids is that of the gateways' clocks; here they are a lie."""
    still_open = await decided(ledger, database, 5_000, ends=False)
    later = await decided(ledger, database, 4_000)
    await decided(ledger, database, 1_000)

    assert {one for one, _, _ in await _found(past_decisions(database, 3_000, LATEST_MS))} == {
        still_open,
        later,
    }


async def test_nothing_older_is_looked_at(ledger: SqlLedger, database: Database):
    await decided(ledger, database, 1_000)
    first = await decided(ledger, database, 5_000)
    await decided(ledger, database, 6_000)

    with statements(database) as asked:
        found = await _found(past_decisions(database, 5_000, LATEST_MS, page=2))

    assert len(found) == 4
    (begins, *_) = [given for statement, given in asked if "FROM decisions" in statement]
    assert first in begins


async def test_without_requests_nothing_is_found(database: Database):
    assert await _found(past_decisions(database, 0, LATEST_MS)) == []
    assert await _found(judged_decisions(database, 0, LATEST_MS)) == []


async def test_only_judged_decisions_come_in_the_order_of_what_was_said(
    ledger: SqlLedger, database: Database
):
    first, second, _silent = [await decided(ledger, database, 1_000 + at) for at in range(3)]
    await judged(database, second, RIGHT, 2_000)
    await judged(database, first, WRONG, 3_000)
    await judged(database, first, RIGHT, 3_000)

    found = [await _found(judged_decisions(database, 0, LATEST_MS, page=page)) for page in (1, 2, 3, 4)]
    assert found == 4 * [[(second, 0, 1), (first, 0, 1), (first, 1, 1)]]

    verdicts = [past.verdict async for past in judged_decisions(database, 0, LATEST_MS)]
    assert verdicts == [Verdict.RIGHT, Verdict.RIGHT, Verdict.WRONG_CAPABILITY]


async def test_a_time_is_that_of_the_decision_however_late_it_was_judged(
    ledger: SqlLedger, database: Database
):
    ids = [await decided(ledger, database, recorded_ms) for recorded_ms in (999, 1_000, 1_999, 2_000)]
    for request_id in ids:
        await judged(database, request_id, RIGHT, 9_000)

    assert [one for one, _, _ in await _found(judged_decisions(database, 1_000, 2_000))] == ids[1:3]


async def test_whoever_looks_back_waits_as_long_as_it_takes(ledger_url: str, tmp_path: Path):
    settings = Settings(data_dir=tmp_path, store=StoreSettings(url=SecretStr(ledger_url)))

    async with open_history(settings) as database:
        if database.is_postgres:
            async with database.reading() as connection:
                driver: Any = (await connection.get_raw_connection()).driver_connection
                # The driver tells it nowhere else.
                assert driver._config.command_timeout is None
        assert await _found(past_decisions(database, 0, LATEST_MS)) == []
