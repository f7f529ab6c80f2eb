"""Every encoder keeps the contract of `routing.embedder`."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.routing.hashing_encoder import HashingEncoder
from dispatcher.routing.use_encoder import UseEncoder

TEXTS = ["我的快递到哪了", "where is my parcel", "any discounts right now", "VPN登不上", "x", "💡", "a" * 600]


@pytest.fixture(scope="module", params=[HashingEncoder, UseEncoder])
def encoder(request):
    return request.param()


def test_vectors_have_the_declared_shape_and_length_one(encoder):
    vectors = encoder.encode(TEXTS)

    assert vectors.shape == (len(TEXTS), encoder.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_batch_gives_what_single_calls_give(encoder):
    singles = np.concatenate([encoder.encode([text]) for text in TEXTS])

    np.testing.assert_allclose(encoder.encode(TEXTS), singles, atol=1e-5)


def test_it_is_deterministic(encoder):
    np.testing.assert_array_equal(encoder.encode(TEXTS), encoder.encode(TEXTS))


def test_texts_without_content_give_zeros_beside_others(encoder):
    vectors = encoder.encode(["", "where is my parcel", " \n\t"])

    assert not vectors[[0, 2]].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_rows(encoder):
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_threads_may_share_it(encoder):
    expected, gate = encoder.encode(TEXTS), threading.Barrier(4)

    def call(_):
        gate.wait(timeout=20)
        return encoder.encode(TEXTS)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(call, range(4)))

    for vectors in found:
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_like_texts_are_nearer_than_unlike_ones(encoder):
    parcel, package, poem = encoder.encode(["where is my parcel", "where is my parcel now", "写一首诗"])

    assert parcel @ package > parcel @ poem + 0.2


def test_encoders_have_names_of_their_own():
    assert HashingEncoder.encoder_id != UseEncoder.encoder_id


def test_a_missing_package_is_one_clear_sentence():
    with pytest.raises(ConfigurationError, match="encoder is missing: install"):
        UseEncoder(package="no_such_package_anywhere")
