"""A prototype is the direction of what its developer wrote."""

import numpy as np

from dispatcher.identifiers import AgentId, Capability
from dispatcher.routing.prototype import DeclaredTexts, build_prototype, declared_texts, stack, unit
from dispatcher.routing.slots import Key

KEY = Key(Capability("a"), AgentId("b"))


def test_it_is_the_normalised_mean_of_descriptions_and_examples():
    vectors = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)

    prototype = build_prototype(KEY, DeclaredTexts(descriptions=("d",), examples=("e", "f")), vectors)

    np.testing.assert_allclose(prototype.vector, np.array([1, 2]) / np.sqrt(5), rtol=1e-6)
    np.testing.assert_array_equal(prototype.example_vectors, vectors[1:])


def test_repeated_texts_count_once(a_capability):
    texts = declared_texts(
        a_capability("a", "tracks parcels", "where is it", "where is it", "tracks parcels")
    )

    assert texts.all == ("tracks parcels", "where is it")
    assert texts.examples == ("where is it",)


def test_declared_texts_are_read_as_requests_are(a_capability):
    texts = declared_texts(a_capability("a", "查詢訂單", "Cafe\u0301  menu", "Caf\u00e9 menu", "ＶＩＰ１"))

    assert texts.all == ("查询订单", "Caf\u00e9 menu", "VIP1")


def test_texts_without_content_stay_zero():
    assert not unit(np.zeros((1, 3), dtype=np.float32)).any()


def test_no_prototypes_stack_to_no_rows():
    assert stack([], 7).shape == (0, 7)
