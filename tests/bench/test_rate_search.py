"""The search for the highest rate that is kept up with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.bench.rate_search import (
    LOWEST,
    MOST_TRIES,
    NEAR_ENOUGH,
    STEP,
    Try,
    highest_kept,
    next_rate,
)


def searched(first, limit):
    """All tries of a search among rates that are kept up with up to `limit`."""
    tries: list[Try] = []
    while (rate := next_rate(tries, first)) is not None:
        tries.append(Try(rate=rate, p99_ms=0.0, kept=rate <= limit))
    return tries


@given(st.floats(min_value=10, max_value=1_000), st.floats(min_value=0.2, max_value=5))
def test_a_rate_just_below_the_limit_is_found(first, share):
    limit = first * share

    found = highest_kept(searched(first, limit))

    assert found is not None
    assert found <= limit <= found * NEAR_ENOUGH * 1.001


@given(st.floats(min_value=1, max_value=1_000), st.floats(min_value=0, max_value=1e9))
def test_a_search_ends(first, limit):
    assert 1 <= len(searched(first, limit)) <= MOST_TRIES


def test_nothing_is_found_where_nothing_is_kept_up_with():
    tries = searched(10, 0)

    assert highest_kept(tries) is None
    assert LOWEST <= tries[-1].rate < LOWEST * STEP


@pytest.mark.parametrize(("kept", "expected"), [(True, 150), (False, pytest.approx(100 / STEP))])
def test_the_second_try_goes_up_or_down(kept, expected):
    assert next_rate([Try(rate=100, p99_ms=0, kept=kept)], 1) == expected
