"""The fixed utterances, and what they take off a score."""

import numpy as np
import pytest

from dispatcher.routing.background import background_texts, contrast_of, contrast_of_background


def test_the_utterances_ship_with_the_package():
    texts = background_texts()

    assert len(texts) == len(set(texts)) == 60
    assert "what is love" in texts


def test_half_the_mean_of_the_three_nearest_is_taken_off():
    background = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [-1, 0]], dtype=np.float32)

    assert contrast_of(np.array([[1, 0]], dtype=np.float32), background)[0] == pytest.approx(0.4)


def test_an_utterance_is_not_compared_with_itself():
    background = np.eye(5, dtype=np.float32)

    assert contrast_of_background(background).tolist() == [0] * 5
