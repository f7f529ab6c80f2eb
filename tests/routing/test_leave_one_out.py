"""An example is judged as if it had not been registered, by any agent of its capability."""

import numpy as np
import pytest

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing import leave_one_out as rule
from dispatcher.routing.leave_one_out import LeftOut, leave_one_out, registered
from dispatcher.routing.prototype import DeclaredTexts, build_prototype, unit
from dispatcher.routing.slots import Key

DIMENSIONS = 32


def _vector(text: str) -> np.ndarray:
    """A direction of its own for each word, so that texts sharing words are similar."""
    total = np.zeros(DIMENSIONS, dtype=np.float32)
    for word in text.split():
        seed = int.from_bytes(word.encode(), "big")
        total += np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)
    return unit(total)


def _registry(*declared):
    """Each: (capability, agent, description, *examples)."""
    prototypes = []
    for capability, agent, description, *examples in sorted(declared):
        texts = DeclaredTexts(descriptions=(description,), examples=tuple(examples))
        vectors = np.stack([_vector(text) for text in texts.all])
        prototypes.append(build_prototype(Key(Capability(capability), AgentId(agent)), texts, vectors))
    return registered(prototypes, DIMENSIONS)


def _left_out(registry) -> LeftOut:
    found = leave_one_out(registry)
    assert found is not None
    return found


PARCEL = ("parcel track", "parcel where", "parcel late")
REFUND = ("refund money", "refund back", "refund when")


def test_a_row_is_scored_against_its_prototype_without_it():
    registry = _registry(("parcel", "a", *PARCEL), ("refund", "b", *REFUND))

    found = _left_out(registry)

    without = unit(_vector("parcel track") + _vector("parcel late"))
    at = [row for row, vector in enumerate(found.vectors) if np.allclose(vector, _vector("parcel where"))]
    assert found.best[at[0]] == pytest.approx(float(without @ _vector("parcel where")), abs=1e-5)
    assert found.right.all()


def test_two_equal_agents_do_not_vouch_for_each_other():
    one = _left_out(_registry(("parcel", "a", *PARCEL), ("refund", "b", *REFUND)))
    two = _left_out(_registry(("parcel", "a", *PARCEL), ("parcel", "a2", *PARCEL), ("refund", "b", *REFUND)))

    np.testing.assert_allclose(two.best, one.best, atol=1e-6)
    np.testing.assert_allclose(two.weight, one.weight)


def test_capabilities_weigh_the_same_whatever_their_number_of_examples():
    found = _left_out(_registry(("parcel", "a", *PARCEL), ("refund", "b", *REFUND[:2])))

    assert sorted(found.weight.tolist()) == [0.75, 0.75, 1.5]


def test_a_twin_under_another_tag_is_right_and_changes_no_score():
    alone = _left_out(_registry(("parcel", "a", *PARCEL), ("refund", "b", *REFUND)))
    twin = _left_out(
        _registry(("parcel", "a", *PARCEL), ("parcel.copy", "c", *PARCEL), ("refund", "b", *REFUND))
    )

    assert twin.twins == {("parcel", "parcel.copy")}
    assert twin.right.all()
    assert set(np.round(twin.best, 5)) == set(np.round(alone.best, 5))


def test_three_of_a_kind_are_all_twins():
    alone = _left_out(_registry(("parcel", "a", *PARCEL), ("refund", "b", *REFUND)))
    found = _left_out(
        _registry(*((name, name, *PARCEL) for name in ("p1", "p2", "p3")), ("refund", "b", *REFUND))
    )

    assert found.twins == {("p1", "p2"), ("p1", "p3"), ("p2", "p3")}
    assert set(np.round(found.best, 5)) == set(np.round(alone.best, 5))
    assert found.right.all()


def test_an_example_that_another_capability_wins_is_wrong():
    found = _left_out(_registry(("parcel", "a", *PARCEL, "refund money back"), ("refund", "b", *REFUND)))

    assert found.right.sum() == len(found.right) - 1
    assert found.twins == frozenset()


def test_a_thief_without_examples_of_its_own_is_no_twin():
    found = _left_out(_registry(("parcel", "a", *PARCEL), ("thief", "b", "parcel where late")))

    assert found.twins == frozenset()


def test_there_is_nothing_to_learn_without_examples():
    assert leave_one_out(_registry(("parcel", "a", "parcel track"))) is None
    assert leave_one_out(registered([], DIMENSIONS)) is None


def test_a_large_registry_gives_the_first_examples_of_each_capability():
    many = [
        (f"c{number:03d}", "a", f"word{number}", *(f"word{number} {turn}" for turn in range(20)))
        for number in range(300)
    ]

    found = _left_out(_registry(*many))

    assert len(found.best) == rule.MAX_ROWS
    assert found.weight.sum() == pytest.approx(rule.MAX_ROWS, rel=1e-4)
