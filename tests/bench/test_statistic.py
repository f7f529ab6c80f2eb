"""Percentiles, medians and ratios."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.bench.statistic import median_ratio, medians, percentile

VALUES = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=200)


@given(VALUES, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(values, share):
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_percentiles_of_one_to_a_hundred(share, expected):
    assert percentile(range(1, 101), share) == expected


def test_nothing_has_no_percentiles():
    assert percentile([], 0.5) == 0


def test_medians_are_of_what_all_rounds_have():
    assert medians([{"a": 1, "b": 2}, {"a": 3}, {"a": 2}]) == {"a": 2}
    assert medians([]) == {}


def test_a_ratio_is_taken_in_each_round_before_the_median():
    assert median_ratio([1, 100, 3], [2, 100, 1]) == 1.0


def test_there_is_no_ratio_to_nothing():
    assert median_ratio([1.0], [0.0]) is None
