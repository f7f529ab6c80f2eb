"""Long tasks on RabbitMQ and PostgreSQL: acknowledged when they start, kept by renewals, whoever dies."""

import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.faults.echo import ONCE, SAFE
from tests.faults.load import Order
from tests.faults.trial import Report, Trial, conclude, open_trial, waiting_in

LEASE_S, ATTEMPT_S = 1.5, 6.0
SETTINGS = {
    "DISPATCHER_DELIVERY__LONG_AFTER_S": "1",
    "DISPATCHER_DELIVERY__LEASE_S": str(LEASE_S),
    "DISPATCHER_DELIVERY__ATTEMPT_TIMEOUT_S": str(ATTEMPT_S),
}
"""Every task is long: the agents' handlers have a minute."""
LOOK_S = 4.0
"""What the gateways and this machine take to see that a time is over."""
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def trial(amqp_url: str, postgres_url: str, tmp_path: Path) -> AsyncIterator[Trial]:
    server_url = urlsplit(postgres_url)._replace(path="/postgres").geturl()
    async with open_trial(tmp_path, amqp_url, server_url, SETTINGS) as trial:
        yield trial


async def test_a_stopped_agents_results_count_although_its_leases_ran_out(trial: Trial) -> None:
    work_s = 2 * LEASE_S
    orders = await trial.load.accepted(12, capability=ONCE, work_s=work_s)
    await _all_started(trial, orders)
    trial.fleet.signal_agent("ada", signal.SIGSTOP)
    await trial.clock.sleep(2 * LEASE_S)
    trial.fleet.signal_agent("ada", signal.SIGCONT)
    trial.heal()

    answers = [await trial.load.ended(order, 30) for order in orders]

    assert {answer["status"] for answer in answers} == {"completed"}
    assert {_part(answer)["attempts"] for answer in answers} == {1}
    assert "ada" in {_part(answer)["agent_id"] for answer in answers}
    _holds(await conclude(trial))


async def test_what_a_killed_agent_ran_is_taken_over_or_said_to_be_unknown(trial: Trial) -> None:
    work_s = 3 * LEASE_S
    safe = await trial.load.accepted(4, capability=SAFE, work_s=work_s)
    once = await trial.load.accepted(4, capability=ONCE, work_s=work_s)
    await _all_started(trial, [*safe, *once])
    at_ada = {start.request_id for start in trial.fleet.starts("ada")}
    trial.fleet.kill_agent("ada")
    killed_at = trial.clock.monotonic()
    await trial.clock.sleep(0.5)
    acknowledged = await waiting_in(trial, "ada") == 0
    trial.heal()

    done = {order.request_id: await trial.load.ended(order, 40) for order in safe}
    lost = [order for order in once if order.request_id in at_ada]
    unknown = [await trial.load.ended(order, LEASE_S + ATTEMPT_S + LOOK_S) for order in lost]
    took_s = trial.clock.monotonic() - killed_at

    assert acknowledged, "what ran was still the broker's to deliver again"
    assert {answer["status"] for answer in done.values()} == {"completed"}
    assert {_part(done[name])["attempts"] for name in done if name in at_ada} == {2}
    assert {_part(answer)["status"] for answer in unknown} == {"outcome_unknown"}
    assert took_s < LEASE_S + ATTEMPT_S + work_s + LOOK_S
    await trial.fleet.start_agent("ada")
    _holds(await conclude(trial))


async def _all_started(trial: Trial, orders: Sequence[Order]) -> None:
    names = {order.request_id for order in orders}

    def started() -> set[str]:
        return {start.request_id for name in ("ada", "bob") for start in trial.fleet.starts(name)}

    await trial.until(lambda: names <= started())


def _part(answer: dict[str, Any]) -> dict[str, Any]:
    (part,) = answer["parts"]
    return dict(part)


def _holds(report: Report) -> None:
    assert report.verdict.violations == ()
    assert report.problems == []
