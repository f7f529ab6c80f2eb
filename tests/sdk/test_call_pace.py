from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.sdk.call_pace import CallPace


def starts(per_s: float | None, asked: list[float]) -> list[float]:
    """When something started, of all the times at which it was asked for."""
    pace, begun = CallPace(per_s), []
    for now in asked:
        if pace.has_room(now):
            pace.note(now)
            begun.append(now)
    return begun


times = st.lists(st.floats(0, 20), max_size=200).map(sorted)


@given(st.integers(1, 20), times)
def test_no_more_start_in_any_second_than_the_pace_allows(per_s, asked):
    begun = starts(per_s, asked)

    assert all(late - early >= 1 for early, late in zip(begun, begun[per_s:], strict=False))


@given(times)
def test_a_pace_below_one_is_kept_over_longer_times(asked):
    assert all(late - early >= 4 for early, late in pairwise(starts(0.25, asked)))


@given(times)
def test_without_a_pace_everything_starts(asked):
    assert starts(None, asked) == asked


def test_a_burst_within_the_pace_starts_at_once():
    assert starts(3, [1.0] * 5 + [2.0] * 5) == [1.0] * 3 + [2.0] * 3


def test_a_pace_beyond_all_bounds_is_bounded():
    pace = CallPace(1e9)

    assert (pace._starts.maxlen, pace._window_s) == (10_000, 1.0)
