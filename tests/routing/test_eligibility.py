"""Each step of the funnel has its reason, and the first that fails is the one given."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from dispatcher import records
from dispatcher.identifiers import AgentId, Capability
from dispatcher.protocol.declaration import Hours
from dispatcher.registry.agent import Agent, AgentStatus, Liveness
from dispatcher.routing.decision import Rejection
from dispatcher.routing.eligibility import Demand, is_open, rejections
from dispatcher.routing.slots import Key

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
DEMAND = Demand(
    allows=lambda _: True, environment="production", payload_bytes=1000, tried=frozenset(), now=NOON
)
IDLE = AgentStatus(liveness=Liveness.ALIVE, capacity=10, running=0, draining=False)


@dataclass(frozen=True)
class Stub:
    """Fulfils `eligibility.Prospect`."""

    key: Key
    agent: Agent
    status: AgentStatus


@pytest.fixture
def prospect(an_agent, a_capability):
    def build(name="a", status=IDLE, **declared) -> Stub:
        agent = an_agent(name, a_capability("c", "does it"), **declared)
        return Stub(key=Key(Capability("c"), agent.agent_id), agent=agent, status=status)

    return build


def _reasons(*prospects, demand=DEMAND):
    found = rejections(prospects, demand, 0.9)
    return {key.agent_id: reason for key, reason in found.items()}


def _busy(running):
    return replace(IDLE, running=running)


def test_an_idle_agent_that_fits_may_take_it(prospect):
    assert _reasons(prospect()) == {}


@pytest.mark.parametrize(
    ("demand", "declared", "status", "reason"),
    [
        ({"allows": lambda _: False}, {}, {}, Rejection.NOT_GRANTED),
        ({"environment": "staging"}, {}, {}, Rejection.ENVIRONMENT),
        ({}, {"available_hours": Hours(start="13:00", end="18:00")}, {}, Rejection.HOURS),
        ({"payload_bytes": 300_000}, {}, {}, Rejection.PAYLOAD_SIZE),
        ({}, {}, {"liveness": Liveness.OFFLINE}, Rejection.OFFLINE),
        ({}, {}, {"capacity": 0}, Rejection.OFFLINE),
        ({}, {}, {"capacity": 0, "draining": True}, Rejection.DRAINING),
    ],
)
def test_what_does_not_fit_is_left_out_even_alone(prospect, demand, declared, status, reason):
    one = prospect(status=replace(IDLE, **status), **declared)

    assert _reasons(one, demand=records.replace(DEMAND, **demand)) == {"a": reason}


def test_the_first_failing_step_is_the_reason(prospect):
    gone = replace(IDLE, liveness=Liveness.OFFLINE)
    demand = records.replace(
        DEMAND, environment="staging", payload_bytes=300_000, tried=frozenset({AgentId("a")})
    )

    assert _reasons(prospect(status=gone), demand=demand) == {"a": Rejection.ENVIRONMENT}
    assert _reasons(prospect(status=gone), demand=records.replace(demand, environment="production")) == {
        "a": Rejection.PAYLOAD_SIZE
    }


def test_a_suspect_agent_may_take_it(prospect):
    assert _reasons(prospect(status=replace(IDLE, liveness=Liveness.SUSPECT))) == {}


def test_a_tried_agent_is_left_out_only_while_there_is_another(prospect):
    demand = records.replace(DEMAND, tried=frozenset({AgentId("a")}))

    assert _reasons(prospect("a"), prospect("b"), demand=demand) == {"a": Rejection.ALREADY_TRIED}
    assert _reasons(prospect("a"), demand=demand) == {}


def test_a_saturated_agent_is_left_out_only_while_another_is_below(prospect):
    full, free = prospect("a", _busy(9)), prospect("b", _busy(8))

    assert _reasons(full, free) == {"a": Rejection.SATURATED}
    assert _reasons(full, prospect("b", _busy(10))) == {}


def test_a_saturated_agent_is_not_left_out_for_a_suspects_sake(prospect):
    full = prospect("a", _busy(9))
    silent = prospect("b", replace(IDLE, liveness=Liveness.SUSPECT))

    assert _reasons(full, silent) == {}
    assert _reasons(full, silent, prospect("c")) == {"a": Rejection.SATURATED}


def test_among_suspects_a_saturated_one_is_left_out(prospect):
    silent = replace(IDLE, liveness=Liveness.SUSPECT)

    assert _reasons(prospect("a", replace(silent, running=9)), prospect("b", silent)) == {
        "a": Rejection.SATURATED
    }


def test_a_saturated_fresh_agent_goes_before_a_tried_free_one(prospect):
    demand = records.replace(DEMAND, tried=frozenset({AgentId("b")}))

    assert _reasons(prospect("a", _busy(10)), prospect("b"), demand=demand) == {"b": Rejection.ALREADY_TRIED}


@pytest.mark.parametrize(
    ("start", "end", "zone", "is_there"),
    [
        ("09:00", "18:00", "UTC", True),
        ("12:00", "12:01", "UTC", True),
        ("09:00", "12:00", "UTC", False),
        ("12:01", "18:00", "UTC", False),
        ("22:00", "06:00", "UTC", False),
        ("18:00", "13:00", "UTC", True),
        ("11:00", "06:00", "UTC", True),
        ("00:00", "00:00", "UTC", True),
        ("09:00", "18:00", "Asia/Shanghai", False),
        ("19:00", "21:00", "Asia/Shanghai", True),
    ],
)
def test_hours_are_those_of_the_agents_own_place(start, end, zone, is_there):
    assert is_open(Hours(start=start, end=end, time_zone=zone), NOON) is is_there


def test_no_hours_mean_always():
    assert is_open(None, NOON)
