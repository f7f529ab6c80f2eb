"""A minute of faults in random order: nothing accepted is lost, nothing is done twice."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.history import Kind
from tests.faults.nemesis import LEAST, run_nemesis
from tests.faults.trial import conclude, open_trial

SECONDS = 60.0


@pytest.mark.timeout(300)
async def test_a_minute_of_faults_loses_and_doubles_nothing(
    amqp_url: str, postgres_url: str, tmp_path: Path
) -> None:
    server_url = urlsplit(postgres_url)._replace(path="/postgres").geturl()
    async with open_trial(tmp_path, amqp_url, server_url) as trial:
        async with trial.load.flowing(most=1200):
            broken = await run_nemesis(trial, SECONDS, seed=20_26)
        report = await conclude(trial)

    verdict = report.verdict
    assert len(set(broken)) >= LEAST
    assert verdict.count(Kind.LOST) == 0, broken
    assert verdict.count(Kind.DOUBLED) == 0, broken
    assert verdict.violations == (), broken
    assert report.problems == [], broken
    assert verdict.accepted == verdict.terminal > 100
