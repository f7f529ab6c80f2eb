import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.tuning import gaps
from dispatcher.tuning.gaps import find_gaps

EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 1.0])


def unit(rows):
    rows = np.array(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_texts_that_mean_the_same_are_one_gap_and_strays_are_none():
    texts = ["pay by phone", "can I pay with my phone", "mobile payment", "visa?", "visa rules", "hello"]
    vectors = unit([EAST, EAST + 0.1 * NORTH, EAST - 0.1 * NORTH, NORTH, NORTH + 0.1 * EAST, -EAST])

    found = find_gaps(texts, vectors, nearness=0.9, least=2)

    assert [(gap.count, gap.texts[0]) for gap in found] == [(3, "pay by phone"), (2, "visa?")]
    assert all(gap.closeness > 0.95 for gap in found)


def test_what_is_asked_again_and_again_counts_each_time_and_is_shown_once():
    (gap,) = find_gaps(
        ["visa?"] * 7 + ["visa rules"], unit([NORTH] * 7 + [NORTH + 0.1 * EAST]), nearness=0.9, least=3
    )

    assert (gap.count, gap.texts) == (8, ["visa?", "visa rules"])


def test_no_texts_have_no_gaps():
    assert find_gaps([], np.zeros((0, 2), dtype=np.float32), nearness=0.5, least=1) == []


@settings(deadline=None)
@given(st.integers(gaps.MAX_TEXTS + 1, gaps.MAX_TEXTS + 500))
def test_beyond_the_bound_an_even_sample_is_looked_at(count):
    chosen = gaps._sample(count)

    assert len(chosen) == gaps.MAX_TEXTS
    assert (chosen[0], chosen[-1]) == (0, count - 1)
    assert (np.diff(chosen) >= 1).all()
