"""Every vector index does the same, and what the exact one does."""

import numpy as np
import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.faiss_index import FaissIndex
from dispatcher.routing.index import NOT_SEARCHED, ExactIndex
from dispatcher.routing.slots import Key

DIMENSIONS = 24


def _key(number: int) -> Key:
    return Key(Capability(f"capability.{number % 7}"), AgentId(f"agent-{number:04d}"))


def _vectors(count, seed=1):
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(params=[ExactIndex, FaissIndex])
def index(request):
    return request.param("encoder", DIMENSIONS)


def _fill(index, vectors):
    for number, vector in enumerate(vectors):
        index.put(_key(number), vector, "encoder")


def _by_key(index, vectors):
    """The vectors of `_fill` in the index's order."""
    return np.stack([vectors[int(key.agent_id.removeprefix("agent-"))] for key in index.keys])


def _positions(scores):
    """Of those within the limit, best first, for each row."""
    order = np.argsort(-scores, axis=1, kind="stable")
    return [[at for at in row if one[at] > NOT_SEARCHED] for row, one in zip(order, scores, strict=True)]


def _found(index, query, limit=5):
    (positions,) = _positions(index.scores(query[None, :], "encoder", limit))
    return [index.keys[position] for position in positions]


@pytest.mark.parametrize("limit", [1, 7, 200, 500])
def test_it_equals_the_exact_index_on_random_data(index, limit):
    exact = ExactIndex("encoder", DIMENSIONS)
    _fill(index, _vectors(200))
    _fill(exact, _vectors(200))
    queries = _vectors(9, seed=2)

    found, wanted = index.scores(queries, "encoder", limit), exact.scores(queries, "encoder", limit)

    assert _positions(found) == _positions(wanted)
    assert {len(row) for row in _positions(found)} == {min(limit, 200)}
    np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_the_best_within_the_limit_are_those_of_all(index):
    _fill(index, _vectors(200))
    queries = _vectors(40, seed=2)

    few, every = index.scores(queries, "encoder", 7), index.scores(queries, "encoder", 200)

    assert _positions(few) == [row[:7] for row in _positions(every)]
    np.testing.assert_allclose(every, queries @ _by_key(index, _vectors(200)).T, atol=2e-6)


def test_it_equals_the_exact_index_after_many_changes(index):
    exact, chance = ExactIndex("encoder", DIMENSIONS), np.random.default_rng(3)
    for number, vector in zip(chance.integers(0, 60, 300), _vectors(300), strict=True):
        for one in (index, exact):
            if number % 3:
                one.put(_key(number), vector, "encoder")
            else:
                one.remove(_key(number + 1))
    query = _vectors(1, seed=4)

    found, wanted = index.scores(query, "encoder", 60), exact.scores(query, "encoder", 60)

    assert index.keys == exact.keys == tuple(sorted(exact.keys))
    assert _positions(found) == _positions(wanted)


def test_ties_go_by_key_whatever_the_order_of_arrival(index):
    vector = _vectors(1)[0]
    for number in (5, 2, 9, 0, 7):
        index.put(_key(number), vector, "encoder")

    found = _found(index, vector, limit=3)

    assert found == sorted(_key(number) for number in (5, 2, 9, 0, 7))[:3]


def test_a_replaced_key_is_found_by_its_new_vector_only(index):
    old, new, other = _vectors(3)
    index.put(_key(1), old, "encoder")
    index.put(_key(2), other, "encoder")

    index.put(_key(1), new, "encoder")

    assert len(index.keys) == 2
    assert index.scores(new[None, :], "encoder", 1).max() == pytest.approx(1, abs=1e-5)
    assert index.scores(old[None, :], "encoder", 1).max() < 0.99


def test_a_removed_key_is_gone_and_removing_it_again_changes_nothing(index):
    _fill(index, _vectors(3))

    index.remove(_key(1))
    index.remove(_key(1))

    assert index.keys == (_key(0), _key(2))
    assert _key(1) not in _found(index, _vectors(3)[1])


def test_an_empty_index_finds_nothing(index):
    assert index.scores(_vectors(2), "encoder", 5).shape == (2, 0)


def test_no_queries_give_no_rows(index):
    _fill(index, _vectors(3))

    assert index.scores(np.zeros((0, DIMENSIONS), dtype=np.float32), "encoder", 2).shape == (0, 3)


def test_vectors_of_another_encoder_or_length_are_refused(index):
    vector = _vectors(1)[0]

    with pytest.raises(ConfigurationError, match="another"):
        index.put(_key(1), vector, "another")
    with pytest.raises(ConfigurationError, match="with 23"):
        index.put(_key(1), vector[:-1], "encoder")
    with pytest.raises(ConfigurationError, match="another"):
        index.scores(vector[None, :], "another", 1)
    assert index.keys == ()


def test_it_says_whose_vectors_it_holds(index):
    assert index.encoder_id == "encoder"
