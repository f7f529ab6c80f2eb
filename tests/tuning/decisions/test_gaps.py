import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.tuning.decisions.gaps import encode_in_pieces, even_sample, find_gaps

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


def test_few_texts_are_all_of_them():
    assert even_sample(iter("abc"), 3).texts == ["a", "b", "c"]
    assert even_sample([]).count == 0


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 2_000))
def test_beyond_the_bound_a_sample_spreads_over_all_texts(most, more):
    count = most + more
    sample = even_sample((str(at) for at in range(count)), most)

    chosen = [int(text) for text in sample.texts]
    assert (len(chosen), sample.count, chosen[0]) == (most, count, 0)
    steps = np.diff([*chosen, count])
    assert (steps >= 1).all()
    assert steps.max() <= 4 * count / most


def test_texts_are_read_as_they_come_and_most_are_forgotten_at_once():
    alive, most_alive = 0, 0

    class Text(str):
        def __init__(self, _text):
            nonlocal alive, most_alive
            alive += 1
            most_alive = max(most_alive, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    even_sample((Text(at) for at in range(5_000)), 20)

    assert most_alive <= 2 * 20 + 3


@pytest.mark.parametrize("count", [0, 1, 130])
def test_any_number_of_texts_is_encoded_in_their_order(count):
    texts = [f"text {at}" for at in range(count)]
    encoder = HashingEncoder()

    vectors = encode_in_pieces(encoder, texts)

    assert vectors.shape == (count, encoder.dimensions)
    assert all((vectors[at] == encoder.encode([texts[at]])[0]).all() for at in range(count))
