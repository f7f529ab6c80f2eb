"""What the composite score does among agents, and would do among capabilities."""

import pytest

from dispatcher.routing.decision import Outcome, Rejection, Weights
from dispatcher.tuning.decisions.composite import (
    admitted,
    deciding,
    group_loads,
    idle_score,
    overturned,
    spreads,
)
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision

OTHER = Rejection.OTHER_CAPABILITY
FREE = candidate("free", "order", OTHER, similarity=0.6, success=1.0, headroom=1.0)
NEARER = candidate("nearer", "order", OTHER, similarity=0.9, success=1.0, headroom=1.0)
SIMILARITY_ONLY = Weights(similarity=1.0, success=0.0, headroom=0.0)


def refused(*candidates):
    return decision(*candidates, outcome=Outcome.OUT_OF_SCOPE)


def below(**factors):
    return candidate(rejection=Rejection.BELOW_SCOPE_FLOOR, **factors)


def test_load_and_success_overturn_where_a_less_similar_agent_scores_better():
    decisions = [decision(BUSY_BUT_GOOD, IDLE, FREE), decision(candidate(headroom=1.0), FREE)]

    assert overturned(decisions, Weights()).value == 0.5
    assert overturned(decisions, SIMILARITY_ONLY).value == 0


def test_a_more_similar_neighbour_is_not_overturned_by_load():
    assert overturned([decision(BUSY_BUT_GOOD, NEARER)], Weights()).value == 0


def test_the_composite_floor_alone_lets_in_whom_somebody_idle_reaches_it_for():
    idle, busy = refused(below(similarity=0.1, headroom=1.0)), refused(below(similarity=0.1, headroom=0.0))

    figure = admitted([idle, busy, refused(), decision(BUSY_BUT_GOOD)], Weights(), 0.35)

    assert (figure.value, figure.of) == (0.5, 2)
    assert idle_score(Weights(), 0.8) == pytest.approx(0.44)


def test_a_factor_differs_by_its_weight_and_only_able_agents_count():
    offline = candidate("off", rejection=Rejection.OFFLINE, success=0.0)

    found = spreads([decision(BUSY_BUT_GOOD, IDLE, offline, FREE), decision(candidate())], Weights())

    assert found["similarity"] == [0]
    assert found["success"] == pytest.approx([0.3 * 0.3])
    assert found["headroom"] == pytest.approx([0.2 * 0.4])


def test_what_differs_most_decides():
    shares = deciding({"similarity": [0.0, 0.0], "success": [0.1, 0.0], "headroom": [0.05, 0.2]})

    assert {factor: figure.value for factor, figure in shares.items()} == {
        "similarity": 0,
        "success": 0.5,
        "headroom": 0.5,
    }


def test_loads_are_those_of_the_group_that_had_a_choice():
    (loads,) = group_loads([decision(BUSY_BUT_GOOD, IDLE, FREE), decision(candidate()), refused()])

    assert (loads.chosen, loads.mean, loads.least) == pytest.approx((0.8, 0.6, 0.4))
