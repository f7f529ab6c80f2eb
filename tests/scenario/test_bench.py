"""`dispatcher bench` at its smallest, for what it reports and leaves behind and not how fast."""

import json
import secrets
import sys
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.scenario.program import Program, dispatcher, run
from tests.services import postgres, rabbitmq
from tests.services.environment import is_ci

SMALL = ("--rounds", "1", "--seconds", "0.2", "--concurrency", "1,4", "--json")


def report(done: CompletedProcess[str]) -> dict[str, Any]:
    """The JSON object of the last line."""
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def all_worked(point: dict[str, Any]) -> bool:
    return all(one["completed"] > 0 and one["failed"] == 0 for one in point.values())


def test_a_decision_is_measured_beside_a_search_and_an_encoder_call() -> None:
    told = report(run(*dispatcher("bench", "route", "--agents", "10", "--rounds", "1", "--json")))

    assert told["encoder"] == "use"
    assert set(told["agents"]["10"]["ratios"]) == {
        "text_known_to_flat_scan",
        "text_new_to_encoder_call",
        "text_new_to_both",
    }


@pytest.mark.timeout(120)
def test_an_embedded_round_trip_is_measured_beside_a_direct_call() -> None:
    # Settings of the caller must not reach what is measured.
    told = report(run(*dispatcher("bench", "roundtrip", *SMALL), variables={"DISPATCHER_STORE__URL": "x"}))

    assert told["mode"] == "embedded"
    assert set(told["points"]) == {"1", "4"}
    assert all(all_worked(point) for point in told["points"].values())
    assert set(told["ratios"]["4"]) == {"direct", "direct_cpu"}
    assert {"p50_over_direct_ms", "fsync_ms", "resident_mb"} <= set(told)


@pytest.mark.timeout(180)
def test_a_round_trip_is_measured_beside_bare_tasks(amqp_url: str, postgres_url: str) -> None:
    services = ("--broker", amqp_url, "--store", postgres_url)

    told = report(run(*dispatcher("bench", "roundtrip", *SMALL, "--payload", "4", *services)))

    assert (told["mode"], told["payload_kb"], told["left_out"]) == ("rabbitmq+postgresql", 4, {})
    assert all(all_worked(point) for point in told["points"].values())
    assert set(told["points"]["4"]) == {"full", "raw", "celery"}
    assert set(told["ratios"]["4"]) == {"raw", "raw_cpu", "celery"}
    assert None not in told["ratios"]["4"].values()
    assert {"p50_over_raw_ms", "fsync_ms"} <= set(told)
    assert {"gateway", "agent", "load", "sum"} <= set(told["points"]["4"]["full"]["cpu_ms"])


@pytest.mark.timeout(120)
def test_a_load_is_answered_to_the_last_request() -> None:
    told = report(run(*dispatcher("bench", "load", "--requests", "40", "--rate", "100", "--json")))

    assert told["outcomes"] == {"completed": 40}
    assert told["accepted_without_end"] == 0


@pytest.mark.timeout(180)
def test_the_highest_rate_is_looked_for_beside_a_bare_task(amqp_url: str, postgres_url: str) -> None:
    services = ("--broker", amqp_url, "--store", postgres_url)

    told = report(run(*dispatcher("bench", "load", "--requests", "20", "--step", "0.2", *services, "--json")))

    assert told["highest"]["steps"]
    assert told["raw"]["rate"] > 0
    assert {"ratio", "mark"} <= set(told)
    assert told["offered_rate"] == 500
    assert sum(told["outcomes"].values()) == 20
    assert told["accepted_without_end"] == 0


@pytest.mark.timeout(120)
def test_memory_is_told_of_a_gateway_and_of_an_agent(amqp_url: str, postgres_url: str) -> None:
    services = ("--broker", amqp_url, "--store", postgres_url)

    told = report(
        run(*dispatcher("bench", "memory", "--agents", "3", "--encoder", "hashing", *services, "--json"))
    )

    assert (told["agents"], told["encoder"], told["failed"]) == (3, "hashing", 0)
    for figures in told["rss_mb"].values():
        assert 0 < figures["started"] <= figures["peak"]
    assert set(told["rss_mb"]) == set(told["marks_mb"]) == {"gateway", "agent"}


@pytest.mark.timeout(240)
def test_a_broker_killed_half_way_loses_nothing_that_was_accepted() -> None:
    missing = rabbitmq.missing() or postgres.missing()
    if missing:
        (pytest.fail if is_ci() else pytest.skip)(missing)
    amount = ("--requests", "60", "--rate", "30")

    told = report(run(sys.executable, "-m", "tests.bench", "load-with-kill", *amount, seconds=230))

    assert told["kill"]["down_s"] > 0
    assert told["longest_stall_ms"] > 0
    assert sum(told["outcomes"].values()) == 60
    assert told["accepted_without_end"] == 0


@pytest.mark.timeout(120)
def test_a_running_dispatcher_can_be_loaded(tmp_path) -> None:
    command = dispatcher("run", "--development", "--port", "0", "--agent", "dispatcher.bench.echo:agent")
    variables = {"DISPATCHER_DATA_DIR": str(tmp_path / secrets.token_hex(4))}
    with Program(*command, variables=variables) as server:
        url = server.wait_for(r"listening on (http://\S+)")[1]

        told = report(
            run(*dispatcher("bench", "load", "--requests", "5", "--rate", "50", "--url", url, "--json"))
        )

    assert told["mode"] == "running gateway"
    assert told["outcomes"] == {"completed": 5}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("roundtrip", "--broker", "amqp://127.0.0.1/"), "both"),
        (("load", "--url", "http://192.0.2.1/"), "loopback"),
        (("route", "--agents", "0"), "numbers from 1"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_words(options: tuple[str, ...], said: str) -> None:
    done = run(*dispatcher("bench", *options))

    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
