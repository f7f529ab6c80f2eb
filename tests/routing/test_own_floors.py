"""Capabilities with a scope floor of their own, and those without."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve

STRICT, OTHER = Capability("strict"), Capability("other")
MADE = Calibration(
    encoder_id="e",
    registry_version=1,
    kind="labelled",
    floor=0.2,
    curve=Curve(slope=10.0, intercept=0.0),
    floors={STRICT: 0.5},
)


@pytest.mark.parametrize(("winner", "floor"), [(STRICT, 0.5), (OTHER, 0.2), (None, 0.2)])
def test_the_winners_own_floor_counts(winner, floor):
    assert MADE.floor_of(winner) == floor


def test_texts_are_accepted_by_their_winners_floor():
    scores = np.array([0.4, 0.4, 0.6, 0.1])

    assert MADE.accepts(scores, 0.0, [STRICT, OTHER, STRICT, None]).tolist() == [False, True, True, False]
    assert MADE.accepts(scores, 0.0).tolist() == [True, True, True, False]
    assert MADE.accepts(scores, 1.0).tolist() == [False] * 4


@given(
    score=st.floats(-1e3, 1e3), slope=st.floats(0, 1e3), intercept=st.floats(-1e3, 1e3), fitted=st.booleans()
)
def test_one_score_has_the_similarity_that_it_has_among_many(score, slope, intercept, fitted):
    curve = Curve(slope=slope, intercept=intercept) if fitted else None
    made = replace(MADE, curve=curve)

    assert made.similarity_of(score) == pytest.approx(float(made.similarity(np.array([score]))[0]), abs=1e-12)
