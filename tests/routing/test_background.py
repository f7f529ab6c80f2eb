"""The fixed utterances, and what they take off a score."""

import numpy as np
import pytest

from dispatcher.routing.background import NEAREST, background_texts, contrast_of, contrast_of_background

EAST = np.array([[1, 0]], dtype=np.float32)


def test_the_utterances_ship_with_the_package():
    texts = background_texts()

    assert len(texts) == len(set(texts)) == 449
    assert "what is love" in texts


def test_the_mean_of_the_nearest_is_taken_off():
    near = np.tile(np.array([[0.8, 0.6]], dtype=np.float32), (NEAREST, 1))
    background = np.concatenate([near, np.array([[-1, 0], [0, -1]], dtype=np.float32)])

    assert contrast_of(EAST, background)[0] == pytest.approx(0.8)


def test_of_a_short_background_all_of_it_is_near():
    background = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)

    assert contrast_of(EAST, background)[0] == pytest.approx(1.6 / 3)


def test_an_utterance_is_not_compared_with_itself():
    background = np.eye(5, dtype=np.float32)

    assert contrast_of_background(background).tolist() == [0] * 5
