"""What a floor on similarity accepts, refuses and costs."""

import numpy as np
import pytest

from dispatcher.routing.curve import Curve
from dispatcher.tuning.analysis.threshold_curve import (
    cheapest,
    cheapest_floor,
    cost_behind,
    cost_difference,
    costs,
    kinds,
    reliability,
    score_at,
    threshold_curve,
)
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.verdict import Verdict


def asked(similarity, *, wanted="refund", won="refund", scope_score=0.5):
    row = RequestRow(text=f"{wanted} {similarity}", language="en", wanted=frozenset(filter(None, [wanted])))
    return Verdict(row=row, best=(won,), similarity=similarity, scope_score=scope_score, in_scope=True)


RIGHT, DOUBTFUL = asked(0.9), asked(0.3, scope_score=0.1)
WRONG = asked(0.6, won="order")
STRANGER, NEAR = asked(0.1, wanted=""), asked(0.5, wanted="")
ALL = [RIGHT, DOUBTFUL, WRONG, STRANGER, NEAR]


def point(floor, **given):
    return threshold_curve(ALL, [floor], own_cost=2.0, **given)[0]


def test_a_floor_accepts_what_reaches_it():
    low, middle, high = (point(floor) for floor in (0.0, 0.5, 0.95))

    assert (low.precision.value, low.recall.value, low.refused.value) == pytest.approx((2 / 5, 2 / 3, 0))
    assert (middle.precision.value, middle.recall.value) == pytest.approx((1 / 3, 1 / 3))
    assert (middle.refused.value, middle.refused.of) == (0.5, 2)
    assert high.precision is None
    assert (high.recall.value, high.refused.value) == (0, 1)


def test_a_floor_costs_what_is_accepted_wrongly_and_more_for_what_is_right_and_refused():
    assert costs(ALL, 0.5, 2.0) == [0.0, 2.0, 1.0, 0.0, 1.0]
    assert point(0.5).cost == pytest.approx(4 / 5)


def test_the_scope_floor_refuses_beside_it():
    assert point(0.0, scope_floor=0.2).recall.value == pytest.approx(1 / 3)
    assert costs([DOUBTFUL], 0.0, 2.0, 0.2) == [2.0]


def test_the_cheapest_floor_is_the_middle_of_equal_ones():
    curve = threshold_curve(ALL, (0.2, 0.25, 0.3, 0.8), own_cost=2.0)

    assert [one.cost for one in curve] == pytest.approx([0.4, 0.4, 0.4, 0.4])
    assert cheapest(curve).floor == 0.3
    assert cheapest(threshold_curve(ALL, (0.0, 0.2, 0.5), own_cost=2.0)).floor == 0.2


def test_a_floor_and_its_price_follow_from_each_other():
    assert cost_behind(0.35) == pytest.approx(1.857, abs=1e-3)
    assert cheapest_floor(cost_behind(0.35)) == pytest.approx(0.35)


def test_the_difference_of_two_floors_has_an_interval():
    figure = cost_difference(ALL, (0.5, 0.2), 2.0, np.random.default_rng(0))

    assert figure.value == pytest.approx(0.4)
    assert figure.low <= figure.value <= figure.high


def test_a_probability_lies_where_the_curve_reaches_it():
    curve = Curve(slope=12.0, intercept=-2.0)

    assert float(curve(np.array([score_at(curve, 0.35)]))[0]) == pytest.approx(0.35)


def test_bins_compare_similarity_with_what_was_right():
    low, middle, high = reliability([*ALL, asked(1.0)], 3)

    assert (low.low, low.high) == pytest.approx((0, 1 / 3))
    assert (low.predicted, low.right.value) == pytest.approx((0.2, 0.5))
    assert (middle.right.value, middle.right.of) == (0, 2)
    assert (high.right.value, high.right.of) == (1, 2)
    assert len(reliability([RIGHT], 10)) == 1


def test_requests_are_told_apart_by_what_became_of_them():
    assert kinds(ALL) == {
        "right winner": [RIGHT, DOUBTFUL],
        "wrong winner": [WRONG],
        "out of scope": [STRANGER, NEAR],
    }
