"""Figures against values worked out by hand or taken from their sources."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.tuning.basis.metrics import (
    Figure,
    any_share,
    auroc,
    bootstrapped,
    calibration_error,
    calibration_figure,
    f1,
    mean,
    quantile,
    share,
    values,
    with_intervals,
)


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
    pairs = [(0.9, 1.0)] * 50 + [(0.6, 0.0)] * 50

    figure = bootstrapped(calibration_error, np.random.default_rng(1), pairs)

    assert figure.value == pytest.approx(0.35)
    assert 0.2 < figure.low < figure.high < 0.5, "shuffled apart, most resamples lie at .1 or at .6"
    assert bootstrapped(partial(quantile, at=0.5), np.random.default_rng(1), [2.0]).value == 2


def calibrated(rows, chance):
    """Rows whose probability is true, ten to each tenth."""
    predicted = np.tile(np.arange(0.05, 1, 0.1), rows // 10)
    return np.stack([predicted, chance.random(rows) < predicted], axis=1)


def test_a_calibration_error_lies_in_its_own_interval_where_chance_can_only_add_to_it():
    """Each bin's frequency is its probability: no error here, and some in every resample."""
    right = [(at / 20, 1.0) for at in range(1, 20, 2) for _ in range(at)]
    wrong = [(at / 20, 0.0) for at in range(1, 20, 2) for _ in range(20 - at)]

    figure = calibration_figure(right + wrong, np.random.default_rng(1))
    plain = bootstrapped(calibration_error, np.random.default_rng(1), right + wrong)

    assert figure.value == pytest.approx(0, abs=1e-9) == figure.low
    assert 0 < figure.high < 0.1
    assert plain.low > plain.value, "which is why it has an interval of its own"
    assert figure.of == 200


@pytest.mark.parametrize("seed", range(10))
def test_a_calibration_figure_holds_its_value_and_stays_within_0_and_1(seed):
    chance = np.random.default_rng(seed)

    figure = calibration_figure(calibrated(40, chance), chance)

    assert 0 <= figure.low <= figure.value <= figure.high <= 1
    assert figure.low < figure.high


def test_an_error_that_is_none_in_most_samples_is_covered_more_often_than_by_percentiles():
    chance = np.random.default_rng(3)
    samples = [calibrated(200, chance) for _ in range(20)]

    covered = [calibration_figure(one, chance).low == 0 for one in samples]

    assert sum(covered) > 5
    assert not any(bootstrapped(calibration_error, chance, one).low == 0 for one in samples)


@pytest.mark.parametrize(
    ("value", "low", "high"), [(1.0, 0.438, 1.0), (0.0, 0.0, 0.562), (0.5, 0.219, 0.781)]
)
def test_three_equal_values_leave_room_for_what_was_not_seen(value, low, high):
    """Wilson's bound of three of three is .438; at an end of the scale it is one-sided."""
    figure = bootstrapped(mean, np.random.default_rng(1), [value] * 3)

    assert (figure.value, figure.low, figure.high) == pytest.approx((value, low, high), abs=1e-3)


def test_equal_differences_may_lie_on_either_side():
    figure = bootstrapped(mean, np.random.default_rng(1), [0.0] * 3, within=(-1.0, 1.0))

    assert (figure.low, figure.high) == pytest.approx((-0.562, 0.562), abs=1e-3)


def test_sides_that_never_overlap_are_told_apart_for_as_many_as_the_smaller_has():
    figure = bootstrapped(auroc, np.random.default_rng(1), [2.0] * 50, [1.0] * 3)

    assert (figure.value, figure.low, figure.high) == pytest.approx((1.0, 0.438, 1.0), abs=1e-3)


def test_rows_without_any_calibration_error_are_no_proof_of_none():
    figure = calibration_figure([(1.0, 1.0)] * 3, np.random.default_rng(1))

    assert (figure.value, figure.low, figure.high) == pytest.approx((0.0, 0.0, 0.562), abs=1e-3)


def test_a_share_of_nothing_is_none_and_has_no_place_in_a_plot():
    half = Figure(value=0.5, low=0.1, high=0.9, of=2)

    assert any_share(0, 0) is None
    assert any_share(1, 2) == share(1, 2)
    assert values([half, None]) == pytest.approx([0.5, np.nan], nan_ok=True)
    assert with_intervals([(3.0, half), (4.0, None)]) == [(3.0, 0.5, 0.1, 0.9)]
