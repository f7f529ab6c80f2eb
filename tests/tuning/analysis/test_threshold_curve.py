"""What a floor on similarity accepts, refuses and costs."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve
from dispatcher.tuning.analysis.threshold_curve import (
    cheapest,
    cheapest_floor,
    cost_behind,
    costs,
    kinds,
    reliability,
    score_at,
    threshold_curve,
    try_choosing,
)
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.routed import RoutedRow


def asked(similarity, *, wanted="refund", won="refund", scope_score=0.5):
    row = RequestRow(text=f"{wanted} {similarity}", language="en", wanted=frozenset(filter(None, [wanted])))
    return RoutedRow(row=row, best=(won,), similarity=similarity, scope_score=scope_score, in_scope=True)


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


FLOORS = np.linspace(0, 0.95, 20).tolist()


def tried(rows, now=0.35, seed=0):
    return try_choosing(rows, FLOORS, now=now, own_cost=2.0, chance=np.random.default_rng(seed))


def test_a_floor_chosen_by_folds_saves_what_it_saves_on_rows_that_it_did_not_see():
    rows = [asked(0.9)] * 20 + [asked(0.3)] * 20 + [asked(0.1, wanted="")] * 20

    found = tried(rows)

    assert all(0.1 < floor <= 0.3 for floor in found.floors)
    assert found.cost == 0
    assert found.saved.value == pytest.approx(20 * 2.0 / 60)
    assert 0 < found.saved.low < found.saved.value < found.saved.high


def test_similarity_that_means_nothing_saves_nothing_though_some_floor_looks_cheapest():
    chance = np.random.default_rng(1)
    rows = [
        asked(float(chance.random()), won=("refund", "order")[int(chance.integers(2))]) for _ in range(60)
    ]
    now = cheapest(threshold_curve(rows, FLOORS, own_cost=1.0))

    by_folds = try_choosing(rows, FLOORS, now=0.0, own_cost=1.0, chance=np.random.default_rng(0))

    assert by_folds is not None
    assert by_folds.cost > now.cost, "chosen on the same rows it looks better than it is"
    assert by_folds.saved.low <= 0 <= by_folds.saved.high


def test_fewer_rows_than_folds_try_nothing():
    assert tried([RIGHT, WRONG]) is None


def test_floors_between_which_no_row_lies_are_not_known_to_cost_the_same():
    found = tried([asked(0.9)] * 6, now=0.5)

    assert found.saved.value == 0
    assert found.saved.low < 0 < found.saved.high


CALIBRATION = Calibration(
    encoder_id="e", registry_version=1, kind="self", floor=0.1, curve=Curve(slope=12.0, intercept=-2.0)
)


def test_a_probability_lies_where_the_curve_reaches_it():
    at = score_at(CALIBRATION, 0.35)

    assert CALIBRATION.similarity_of(at) == pytest.approx(0.35)


def test_without_a_curve_it_lies_at_the_scope_floor():
    bare = replace(CALIBRATION, curve=None)

    assert score_at(bare, 0.35) == 0.1
    assert (bare.similarity_of(0.1), bare.similarity_of(0.0999)) == (1, 0)


def test_what_nobody_asks_has_no_figure():
    no_strangers, strangers, nothing = (
        threshold_curve(rows, [0.5], own_cost=2.0)[0] for rows in ([RIGHT], [STRANGER], [])
    )

    assert (no_strangers.refused, no_strangers.recall is not None) == (None, True)
    assert (strangers.recall, strangers.precision) == (None, None)
    assert (nothing.recall, nothing.refused, nothing.cost) == (None, None, 0)


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
