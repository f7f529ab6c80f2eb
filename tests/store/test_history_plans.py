"""Looking back an hour reads an hour, however much was kept before it."""

from pathlib import Path

from dispatcher.store.engine import open_engine
from dispatcher.store.history import judged_decisions, past_decisions
from dispatcher.store.schema import upgrade
from tests.conformance.store.past_requests import statements


async def test_every_question_has_an_index_to_begin_in(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    await upgrade(url)
    async with open_engine(url) as database:
        with statements(database) as asked:
            for source in (past_decisions(database, 1_000, 2_000), judged_decisions(database, 1_000, 2_000)):
                assert [past async for past in source] == []
        async with database.reading() as connection:
            plans = [
                (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {one}", given)).mappings().first()
                for one, given in asked
                if one.startswith("SELECT")
            ]

    assert [plan["detail"] for plan in plans if plan] == [
        "SEARCH requests USING COVERING INDEX ix_requests_finished (finished_ms>?)",
        "SEARCH requests USING INDEX ix_requests_open",
        "SEARCH feedback USING INDEX ix_feedback_recorded_ms (recorded_ms>?)",
    ]
