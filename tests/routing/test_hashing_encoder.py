"""Hashed n-grams; see `tests/conformance/test_embedder.py` for what every encoder keeps."""

import numpy as np

from dispatcher.routing.hashing_encoder import HashingEncoder


def test_a_text_without_a_character_is_like_no_other():
    empty, spaces, word = HashingEncoder().encode(["", " \t\n", "order"])

    assert not empty.any()
    assert not spaces.any()
    assert np.isclose(np.linalg.norm(word), 1.0)
