"""What became of messages of several wishes."""

import numpy as np
import pytest

from dispatcher.tuning.analysis.messages import (
    Fate,
    Heard,
    fates,
    figures,
    lost_wishes,
    split_counts,
)
from dispatcher.tuning.basis.metrics import share
from dispatcher.tuning.basis.rows import RequestRow


def heard(wanted, *intents):
    return Heard(row=RequestRow(text="t", language="en", wanted=frozenset(wanted)), intents=intents)


EXACT = heard("ab", "b", "a")
CASES = [
    (EXACT, Fate.EXACT),
    (heard("", None), Fate.EXACT),
    (heard("ab", "a"), Fate.NOT_SPLIT),
    (heard("ab", "a", "b", "c"), Fate.SPLIT_TOO_FAR),
    (heard("ab", "a", None), Fate.REFUSED),
    (heard("ab", "a", "c"), Fate.WRONG_AGENT),
    (heard("ab", "a", "a"), Fate.WRONG_AGENT),
    (heard("ab", "c", None), Fate.WRONG_AGENT),
]


@pytest.mark.parametrize(("one", "fate"), CASES)
def test_a_message_fails_by_what_went_wrong_first(one, fate):
    assert one.fate is fate


def test_fates_are_counted_by_wishes():
    assert fates([EXACT, heard("a", "a"), heard("ab", "a")]) == {
        1: {Fate.EXACT: 1},
        2: {Fate.EXACT: 1, Fate.NOT_SPLIT: 1},
    }


def test_wishes_are_laid_beside_intents():
    table = split_counts([EXACT, heard("a", "a"), heard("", None), heard("abc", *"abcd")], 2)

    assert table.tolist() == [[2, 0], [0, 2]]


def test_figures_are_those_of_eval_with_their_intervals():
    found = figures([EXACT, heard("ab", "a")], np.random.default_rng(1)).found

    assert found["multi_exact"] == share(1, 2)
    assert found["multi_f1"].value == pytest.approx((1 + 2 / 3) / 2)
    assert found["multi_f1"].low < found["multi_f1"].value < found["multi_f1"].high
    assert not figures([], np.random.default_rng(1)).found


def test_wishes_without_a_task_are_counted():
    assert lost_wishes([heard("ab", "a"), heard("bc", "a", "c"), heard("c", None)]) == {"b": 2, "c": 1}
