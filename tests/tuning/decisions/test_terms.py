import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.errors import ConfigurationError
from dispatcher.routing.decision import Weights
from dispatcher.tuning.decisions.replay import Terms
from dispatcher.tuning.decisions.terms import change_terms


def test_weights_that_are_not_named_keep_their_proportion():
    changed = change_terms(Terms(), ["weights.similarity=0.6"])

    assert changed.weights.similarity == 0.6
    assert changed.weights.success == pytest.approx(0.24)
    assert changed.weights.headroom == pytest.approx(0.16)


def test_floors_are_set_together_or_each():
    assert change_terms(Terms(), ["floor=0.4"]) == Terms(similarity_floor=0.4, composite_floor=0.4)
    assert change_terms(Terms(), ["floor=0.4", "composite_floor=0.1"]) == Terms(
        similarity_floor=0.4, composite_floor=0.1
    )
    assert change_terms(Terms(), ["scope_floor=-0.2", "saturation=0.5"]) == Terms(
        scope_floor=-0.2, saturation=0.5
    )


def test_nothing_named_changes_nothing():
    terms = Terms(weights=Weights(similarity=1, success=0, headroom=0), scope_floor=0.1)

    assert change_terms(terms, []) == terms


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (["weights.speed=1"], "there is no term 'weights.speed'"),
        (["floor"], "floor must be a number"),
        (["floor=nan"], "floor must be a number"),
        (["floor=1.5"], "between 0 and 1"),
        (["scope_floor=-2"], "between -1 and 1"),
        (["floor=0.1", "floor=0.2"], "twice"),
        (["weights.similarity=0.8", "weights.success=0.5"], "sum to 1"),
        (["weights.similarity=0.5", "weights.success=0.2", "weights.headroom=0.2"], "sum to 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(assignments, says):
    with pytest.raises(ConfigurationError, match=says):
        change_terms(Terms(), assignments)


def test_a_rest_of_nothing_can_not_be_shared():
    terms = Terms(weights=Weights(similarity=1, success=0, headroom=0))

    with pytest.raises(ConfigurationError, match="name one of them"):
        change_terms(terms, ["weights.similarity=0.5"])


@given(st.lists(st.sampled_from(["similarity", "success", "headroom"]), max_size=2, unique=True), st.data())
def test_weights_always_sum_to_one(names, data):
    shares = [data.draw(st.floats(0, 1 / max(len(names), 1))) for _ in names]

    weights = change_terms(
        Terms(), [f"weights.{name}={share!r}" for name, share in zip(names, shares, strict=True)]
    ).weights

    assert weights.similarity + weights.success + weights.headroom == pytest.approx(1)
