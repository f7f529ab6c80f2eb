"""Whom a decision chooses, and by which floor, where some of the agents are suspect."""

from dataclasses import replace

import pytest

from dispatcher.clock import SystemClock
from dispatcher.registry.agent import AgentStatus, Liveness
from dispatcher.routing.choice import Choice, Registry
from dispatcher.routing.curve import Curve
from dispatcher.routing.decision import Rejection
from dispatcher.routing.rules import RoutingRules

REGISTRY = Registry(
    similarity=Curve(slope=10, intercept=-3), keys=2, encoder_id="encoder", version=1, calibration="self"
)
FULL = AgentStatus(liveness=Liveness.ALIVE, capacity=10, running=10, draining=False)
SILENT = replace(FULL, liveness=Liveness.SUSPECT, running=0)


@pytest.fixture
def decide(directory, an_agent, a_capability, a_query):
    """The decision on `track`, which agents a and b have, at similarity 0.4."""
    track = a_capability("track", "does track")
    directory.agents += [an_agent("a", track), an_agent("b", track)]

    def call(**statuses):
        directory.statuses |= statuses
        choice = Choice(directory, RoutingRules(), REGISTRY, SystemClock())
        return choice.decide(a_query(capability="track", similarity=0.4), None)

    return call


def test_a_suspect_with_room_does_not_hold_the_floor_against_a_saturated_one_that_is_heard(decide, directory):
    directory.successes |= {"a": 0.8, "b": 0.45}

    decision = decide(a=SILENT, b=FULL)

    assert (decision.agent_id, decision.reason) == ("b", "least_bad_of_saturated")
    assert decision.score == pytest.approx(0.335)
    assert [one.rejection for one in decision.candidates] == [None, Rejection.OUTRANKED]


def test_among_suspects_with_room_the_floor_counts(decide, directory):
    directory.successes |= {"a": 0.0, "b": 0.0}
    busy = replace(SILENT, running=8)

    assert decide(a=busy, b=busy).reason == "below_composite_floor"
