"""The floor and the curve that rows give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.routing.curve import Curve, Rows, fit_curve, join, scope_floor, weighted_quantile


def _rows(*scores: float, right: bool = True, weight: float = 1.0) -> Rows:
    count = len(scores)
    return Rows(score=np.array(scores), right=np.full(count, right), weight=np.full(count, weight))


def test_the_floor_lies_between_separated_rows():
    assert 0.3 < scope_floor(_rows(0.6, 0.7), _rows(0.1, 0.2, right=False), 0.03) < 0.45


def test_the_floor_gives_up_the_cheaper_rows():
    inside, outside = _rows(0.1, 0.5, 0.6, 0.7), _rows(0.0, 0.2, 0.3, right=False)

    assert 0.3 < scope_floor(inside, outside, 0.01) < 0.5


def test_own_requests_are_dearer_than_strangers():
    even = scope_floor(_rows(0.4, 0.6), _rows(0.2, 0.5, right=False), 0.01)

    assert even < 0.4


def test_rows_that_are_wrong_inside_do_not_hold_the_floor_down():
    inside = join(_rows(0.6, 0.7), _rows(0.05, 0.06, right=False))

    assert scope_floor(inside, _rows(0.1, 0.2, right=False), 0.03) > 0.3


def test_nothing_right_inside_refuses_what_is_outside():
    assert scope_floor(_rows(0.5, right=False), _rows(0.1, 0.9, right=False), 0.01) == pytest.approx(0.9)


def test_the_curve_is_even_where_right_and_wrong_balance():
    curve = fit_curve(join(_rows(0.5, 0.6, 0.7), _rows(0.1, 0.2, 0.3, right=False)))

    assert curve(np.array([0.4]))[0] == pytest.approx(0.5, abs=0.02)
    assert curve(np.array([0.7]))[0] > 0.9
    assert curve(np.array([0.1]))[0] < 0.1


def test_weights_move_the_curve():
    light = fit_curve(join(_rows(0.5, 0.6), _rows(0.4, 0.55, right=False, weight=0.2)))
    heavy = fit_curve(join(_rows(0.5, 0.6), _rows(0.4, 0.55, right=False, weight=5.0)))

    assert light(np.array([0.5]))[0] > heavy(np.array([0.5]))[0]


def test_rows_the_wrong_way_round_give_a_flat_curve():
    curve = fit_curve(join(_rows(0.1, 0.2), _rows(0.8, 0.9, right=False)))

    assert curve.slope == 0


def test_equal_scores_give_their_share():
    curve = fit_curve(join(_rows(0.5, 0.5, 0.5), _rows(0.5, right=False)))

    assert curve(np.array([0.5]))[0] == pytest.approx(0.75, abs=0.01)


_score = st.floats(-1, 1, allow_nan=False, width=32)


@settings(max_examples=60)
@given(st.lists(st.tuples(_score, st.booleans(), st.floats(0.01, 10)), min_size=2, max_size=30))
def test_any_rows_give_probabilities_that_never_fall(rows):
    score, right, weight = (np.array(column) for column in zip(*rows, strict=True))

    curve = fit_curve(Rows(score=score.astype(float), right=right, weight=weight))
    p = curve(np.linspace(-1, 1, 21))

    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p) >= 0).all()


def test_extreme_scores_stay_in_range():
    assert Curve(slope=1e6, intercept=0)(np.array([-1e6, 1e6])).tolist() == pytest.approx([0, 1])


def test_a_quantile_counts_weight():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0])

    assert [weighted_quantile(values, weights, share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1, 1, 2, 2, 3]
