"""Ten seconds of ten times too much: what is over the bound is refused at once, and memory stays."""

from pathlib import Path

import pytest

from tests.faults.flood import BACKLOG, CAPACITY, flooded

SECONDS = 10.0


@pytest.mark.timeout(120)
async def test_a_flood_is_refused_at_once_and_what_was_accepted_is_done(tmp_path: Path) -> None:
    # Other tests run beside this one: half of the refusals tell enough.
    report = await flooded(tmp_path, SECONDS, twentieths=10)

    assert report.problems == []
    assert report.verdict.violations == ()
    assert report.verdict.accepted == report.verdict.completed
    assert CAPACITY * SECONDS / 2 < report.verdict.accepted < 3 * (CAPACITY * SECONDS + BACKLOG)
