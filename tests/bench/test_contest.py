"""What is made of rounds."""

import pytest

from dispatcher.bench.address import loopback_address
from dispatcher.bench.chain import Services, given_services
from dispatcher.bench.contest import Measured, Rules, latency_over, ratios, summary
from dispatcher.bench.roundtrip import report
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId
from dispatcher.protocol.topology import Topology


def measured(rate: float, p50: float, **cpu: float) -> Measured:
    figures = {"rate": rate, "p50_ms": p50, "p95_ms": p50, "p99_ms": p50, "completed": 10, "failed": 1}
    return Measured(figures=figures, cpu=cpu, foreign=0.5)


SERIES = {
    ("full", 16): [measured(50, 9, gateway=2, agent=1), measured(90, 6, gateway=1, agent=1)],
    ("raw", 16): [measured(100, 3, caller=1), measured(100, 3, caller=1)],
}


RULES = Rules(rounds=2, seconds=1, concurrency=(16,))


def test_ratios_are_of_rates_and_of_the_cpu_of_all_processes():
    assert ratios(SERIES, ("full", "raw"), 16) == {"raw": 0.7, "raw_cpu": 2.5}


def test_how_much_later_is_told_in_milliseconds():
    assert latency_over(SERIES, ("full", "raw"), 16) == 4.5


def test_a_summary_has_medians_and_sums():
    told = summary(SERIES, "full", 16)

    assert (told["rate"], told["completed"], told["failed"]) == (70, 20, 2)
    assert told["cpu_ms"] == {"gateway": 1.5, "agent": 1, "sum": 2.5}


def test_a_report_has_celery_beside_the_limit():
    series = {**SERIES, ("celery", 16): [measured(50, 3), measured(60, 3)]}

    told = report(series, RULES, ["raw", "celery"])

    assert told["ratios"] == {"16": {"raw": 0.7, "raw_cpu": 2.5, "celery": 1.25}}
    assert set(told["points"]["16"]) == {"full", "raw", "celery"}
    assert told["p50_over_raw_ms"] == 4.5


def test_without_celery_its_ratio_is_null():
    told = report(SERIES, RULES, ["raw"])

    assert told["ratios"] == {"16": {"raw": 0.7, "raw_cpu": 2.5, "celery": None}}


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:80", "https://127.0.0.1", "127.0.0.1:80", "amqp://localhost"]
)
def test_another_machine_or_scheme_is_refused(url):
    with pytest.raises(ConfigurationError):
        loopback_address(url, "http")


def test_a_url_without_a_port_has_its_scheme_s():
    assert loopback_address("postgresql+asyncpg://u:p@localhost/d", "postgresql") == ("localhost", 5432)


def test_a_broker_without_a_database_is_refused():
    with pytest.raises(ConfigurationError, match="both"):
        given_services("amqp://127.0.0.1/", None, "bench-x")
    assert given_services(None, None, "bench-x") is None


def test_all_that_a_run_makes_at_the_broker_is_known():
    services = Services(broker="", store="", prefix="bench-x", agents=(AgentId("many"),))
    names = Topology(prefix="bench-x")

    assert {names.task_queue(AgentId("many")), names.task_queue(AgentId("bench"))} <= set(services.queues())
    assert {names.results_queue, names.registry_queue, names.dead_queue} <= set(services.queues())
    assert {names.task_exchange, names.heartbeat_exchange} <= set(services.exchanges())
