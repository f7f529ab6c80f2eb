import random
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.backoff import BackoffRules, doubled, pauses

LONGEST = [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_pause_doubles_with_every_try_up_to_the_longest():
    assert [doubled(0.25, tried) for tried in range(1, 5)] == [0.25, 0.5, 1.0, 2.0]
    assert [doubled(0.25, tried, 0.75) for tried in range(1, 5)] == [0.25, 0.5, 0.75, 0.75]


@given(st.floats(0, 60), st.integers(1, 10**9), st.floats(0, 3600))
def test_no_number_of_tries_makes_a_pause_longer_than_the_longest(first_s, tried, longest_s):
    assert 0 <= doubled(first_s, tried, longest_s) <= longest_s


@given(st.integers())
def test_pauses_double_up_to_the_longest_and_are_shortened_at_most_by_half(seed):
    found = list(islice(pauses(BackoffRules(), random.Random(seed)), len(LONGEST)))

    assert all(longest / 2 <= pause <= longest for pause, longest in zip(found, LONGEST, strict=True))


def test_instances_do_not_try_in_step():
    one, other = (next(pauses(BackoffRules(), random.Random(seed))) for seed in (1, 2))

    assert one != other
