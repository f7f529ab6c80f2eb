"""Figures against values worked out by hand or taken from their sources."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.tuning.basis.metrics import auroc, bootstrapped, calibration_error, f1, mean, quantile, share


def test_wilsons_interval_is_the_published_one():
    """15 of 148, Newcombe (1998), table I: 0.0624 to 0.1605."""
    figure = share(15, 148)

    assert figure.value == pytest.approx(15 / 148)
    assert (figure.low, figure.high) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert figure.of == 148


@pytest.mark.parametrize(("hits", "value"), [(0, 0.0), (20, 1.0)])
def test_at_the_ends_the_interval_stays_within_0_and_1(hits, value):
    figure = share(hits, 20)

    assert 0 <= figure.low <= value <= figure.high <= 1
    assert figure.high - figure.low == pytest.approx(0.161, abs=1e-3)


scores = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(scores, scores)
def test_auroc_is_the_share_of_pairs_in_order_ties_half(inside, outside):
    pairs = [(one > other) + (one == other) / 2 for one, other in product(inside, outside)]

    assert auroc(inside, outside) == pytest.approx(sum(pairs) / len(pairs))


def test_calibration_error_weighs_the_gaps_of_the_bins():
    surely = [(1.0, 1.0)] * 4
    halves = [(0.55, 1.0), (0.55, 0.0)]
    wrong = [(0.05, 1.0)] * 2

    assert calibration_error(surely) == 0
    assert calibration_error(halves) == pytest.approx(0.05)
    assert calibration_error(surely + halves + wrong) == pytest.approx((0 + 2 * 0.05 + 2 * 0.95) / 8)


def test_gaps_of_opposite_sign_in_two_bins_do_not_cancel():
    assert calibration_error([(0.25, 1.0), (0.75, 0.0)]) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("found", "wanted", "value"),
    [
        (set(), set(), 1.0),
        ({"a"}, set(), 0.0),
        (set(), {"a"}, 0.0),
        ({"a"}, {"a", "b"}, 2 / 3),
        ({"a", "b"}, {"a", "b"}, 1.0),
    ],
)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(found, wanted, value):
    assert f1(found, wanted) == pytest.approx(value)


def test_a_quantile_is_interpolated():
    assert [quantile([3, 1, 2, 4], at) for at in (0, 0.5, 1)] == [1, 2.5, 4]


def test_a_bootstrap_interval_is_as_wide_as_theory_says_and_repeats_with_its_seed():
    values = np.random.default_rng(7).normal(10, 2, size=400)

    figure = bootstrapped(mean, np.random.default_rng(1), values)

    assert figure == bootstrapped(mean, np.random.default_rng(1), values)
    assert figure.low < figure.value < figure.high
    assert figure.high - figure.low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.15)
    assert figure.of == 400


def test_samples_are_drawn_again_apart_from_one_another():
    figure = bootstrapped(auroc, np.random.default_rng(1), [1, 2, 3, 4, 5], [0, 2, 4])

    assert figure.value == pytest.approx(auroc([1, 2, 3, 4, 5], [0, 2, 4]))
    assert 0 <= figure.low < figure.value < figure.high <= 1
    assert figure.of == 8


def test_pairs_stay_together():
    pairs = [(0.9, 1.0)] * 5 + [(0.1, 0.0)] * 5

    figure = bootstrapped(calibration_error, np.random.default_rng(1), pairs)

    assert (figure.low, figure.high) == pytest.approx((0.1, 0.1))
    assert bootstrapped(partial(quantile, at=0.5), np.random.default_rng(1), [2.0]).value == 2
