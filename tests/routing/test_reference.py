"""The shipped rows are complete, say where they come from, and fit any registry."""

from importlib.resources import files

import numpy as np
import orjson
import pytest

from dispatcher.routing.reference import (
    BINS,
    LOW,
    WIDTH,
    histogram,
    inside_rows,
    load_reference,
    outside_rows,
)
from dispatcher.routing.use_encoder import UseEncoder


@pytest.fixture
def reference():
    return load_reference(UseEncoder.encoder_id)


def test_the_packaged_encoder_has_rows_for_every_size(reference):
    assert sorted(reference.sizes) == [1, 2, 4, 8, 16, 32, 64]
    for size in reference.sizes.values():
        assert len(size.right) == len(size.wrong) == len(size.outside) == BINS
        assert size.right.sum() + size.wrong.sum() == pytest.approx(1, abs=1e-3)
        assert size.outside.sum() == pytest.approx(1, abs=1e-3)


def test_the_file_says_where_it_comes_from_and_none_of_it_is_reported_on():
    name = f"{UseEncoder.encoder_id}.json"
    document = orjson.loads(files("dispatcher.routing").joinpath("reference", name).read_bytes())

    assert set(document["made_from"]["sources"]) == {"hwu64", "banking77", "crosswoz", "metatool"}
    assert {"seed", "draws_per_set_and_size"} <= set(document["made_from"])
    assert document["heights"] == {"low": LOW, "width": WIDTH, "bins": BINS}


@pytest.mark.parametrize(("capabilities", "size"), [(0, 1), (1, 1), (3, 4), (5, 4), (24, 32), (1000, 64)])
def test_the_nearest_size_is_taken(reference, capabilities, size):
    assert reference.nearest(capabilities) is reference.sizes[size]


def test_rows_weigh_what_they_are_told_to(reference):
    size = reference.nearest(4)

    assert inside_rows(size, 50).weight.sum() == pytest.approx(50, abs=0.1)
    assert outside_rows(size, 50).weight.sum() == pytest.approx(50, abs=0.1)
    assert not outside_rows(size, 50).right.any()


def test_an_encoder_without_rows_has_none():
    assert load_reference("hashing-ngram-1") is None


def test_heights_beyond_the_ends_are_counted_at_the_ends():
    counts = histogram(np.array([-9.0, LOW, 0.01, 9.0]), np.array([1.0, 1.0, 2.0, 1.0]))

    assert (counts[0], counts[-1], counts.sum()) == (2, 1, 5)
    assert counts[30] == 2
