import random
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.sdk.backoff import BackoffRules, pauses

LONGEST = [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@given(st.integers())
def test_pauses_double_up_to_the_longest_and_are_shortened_at_most_by_half(seed):
    found = list(islice(pauses(BackoffRules(), random.Random(seed)), len(LONGEST)))

    assert all(longest / 2 <= pause <= longest for pause, longest in zip(found, LONGEST, strict=True))


def test_instances_do_not_try_in_step():
    one, other = (next(pauses(BackoffRules(), random.Random(seed))) for seed in (1, 2))

    assert one != other
