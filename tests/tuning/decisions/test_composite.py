"""What the composite score does among agents, and would do among capabilities."""

import pytest

from dispatcher.records import replace
from dispatcher.routing.decision import Outcome, Rejection, Weights
from dispatcher.tuning.basis.metrics import share
from dispatcher.tuning.decisions.composite import (
    FACTORS,
    admitted,
    deciding,
    group_loads,
    idle_score,
    outscored,
    spreads,
)
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision

OTHER = Rejection.OTHER_CAPABILITY
FREE = candidate("free", "order", OTHER, similarity=0.6, success=1.0, headroom=1.0)
NEARER = candidate("nearer", "order", OTHER, similarity=0.9, success=1.0, headroom=1.0)
SIMILARITY_ONLY = Weights(similarity=1.0, success=0.0, headroom=0.0)


def refused(*candidates):
    return decision(*candidates, outcome=Outcome.OUT_OF_SCOPE, reason="below_scope_floor")


def below(**factors):
    return candidate(rejection=Rejection.BELOW_SCOPE_FLOOR, **factors)


def test_load_and_success_outweigh_where_a_less_similar_agent_scores_better():
    decisions = [decision(BUSY_BUT_GOOD, IDLE, FREE), decision(candidate(headroom=1.0), FREE)]

    assert outscored(decisions, Weights()) == share(1, 2)
    assert outscored(decisions, SIMILARITY_ONLY) == share(0, 2)


def test_a_more_similar_neighbour_is_not_outscored_by_load():
    assert outscored([decision(BUSY_BUT_GOOD, NEARER)], Weights()) == share(0, 1)


def test_the_composite_floor_alone_lets_in_whom_somebody_idle_reaches_it_for():
    idle, busy = refused(below(similarity=0.1, headroom=1.0)), refused(below(similarity=0.1, headroom=0.0))

    figure = admitted([idle, busy, refused(), decision(BUSY_BUT_GOOD)], Weights(), 0.35)

    assert figure == share(1, 2)
    assert idle_score(Weights(), 0.8) == pytest.approx(0.44)


def test_what_the_floors_refused_counts_with_whom_a_person_got_but_not_what_a_missing_grant_did():
    near = below(similarity=0.1, headroom=1.0)
    with_people = replace(refused(near), outcome=Outcome.HANDED_OFF)
    not_granted = replace(refused(near), reason="not_granted")
    to_fallback = decision(candidate("last", "faq"), refused_for="below_scope_floor", reason="fallback")

    assert admitted([with_people, not_granted, to_fallback], Weights(), 0.35) == share(1, 1)


def test_of_no_decisions_there_is_no_figure():
    alone = [decision(candidate()), decision(candidate())]

    assert outscored([refused()], Weights()) is None
    assert admitted(alone, Weights(), 0.35) is None
    assert deciding(spreads(alone, Weights())) == dict.fromkeys(FACTORS)
    assert group_loads(alone) == []


def test_a_factor_differs_by_its_weight_and_only_able_agents_count():
    offline = candidate("off", rejection=Rejection.OFFLINE, success=0.0)

    found = spreads([decision(BUSY_BUT_GOOD, IDLE, offline, FREE), decision(candidate())], Weights())

    assert found["similarity"] == [0]
    assert found["success"] == pytest.approx([0.3 * 0.3])
    assert found["headroom"] == pytest.approx([0.2 * 0.4])


def test_what_differs_most_decides():
    shares = deciding({"similarity": [0.0, 0.0], "success": [0.1, 0.0], "headroom": [0.05, 0.2]})

    assert shares == {"similarity": share(0, 2), "success": share(1, 2), "headroom": share(1, 2)}


def test_loads_are_those_of_the_group_that_had_a_choice():
    (loads,) = group_loads([decision(BUSY_BUT_GOOD, IDLE, FREE), decision(candidate()), refused()])

    assert (loads.chosen, loads.mean, loads.least) == pytest.approx((0.8, 0.6, 0.4))
