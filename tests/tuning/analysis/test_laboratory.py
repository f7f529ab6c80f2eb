"""Runs that notebooks ask for, with the encoder that needs no model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.tuning.analysis.example_gain import extended
from dispatcher.tuning.analysis.laboratory import laboratory, sample, sample_decisions
from dispatcher.tuning.analysis.messages import Fate
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.decisions.comparison import compare
from dispatcher.tuning.decisions.replay import Terms
from tests.tuning.sets import WORDS, Recording, product, shop

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dataset(tmp_path):
    return read_dataset(shop(tmp_path / "shop"))


async def test_requests_are_ranked_by_the_product(dataset):
    async with laboratory(product()) as lab:
        run = await lab.run(dataset.agents, dataset.requests)

    assert [one.row for one in run.routed] == list(dataset.requests)
    assert sum(one.is_right for one in run.routed) == 12
    assert run.calibration is not None
    assert run.calibration.kind == "self"


async def test_what_a_registry_holds_is_not_asked_of_it(dataset):
    known = replace(dataset.requests[0], text="ORDER status")
    async with laboratory(product()) as lab:
        routed = await lab.routed(dataset.agents, [known, *dataset.requests])

    assert known not in [one.row for one in routed]
    assert len(routed) == len(dataset.requests)


async def test_runs_beside_each_other_are_of_what_neither_registry_holds(dataset):
    added = dataset.requests[0].text
    more = extended(dataset.agents, {Capability("order"): [added]})
    async with laboratory(product()) as lab:
        before, after = await lab.beside([dataset.agents, more], dataset.requests)

    assert [one.row for one in before] == [one.row for one in after] == list(dataset.requests[1:])


async def test_a_learning_curve_never_asks_what_its_last_point_knows(dataset):
    known = [replace(dataset.requests[0], text=WORDS["Order"][3])]
    async with laboratory(product()) as lab:
        none, four = await lab.learning_curve(dataset.agents, [*dataset.requests, *known], (0, 4))

    assert none.right is not None
    assert four.right is not None
    assert none.right.of == four.right.of == 12


async def test_each_example_is_asked_once_while_it_is_not_registered(dataset):
    recording = Recording()
    async with laboratory(product(recording)) as lab:
        routed = await lab.left_out(dataset.agents)

    assert sorted(one.row.text for one in routed) == sorted(sum(WORDS.values(), ()))
    assert all(one.similarity < 1 for one in routed)
    texts = [text for batch in recording.batches for text in batch]
    assert len(texts) == len(set(texts)), "a text was encoded twice"


async def test_a_learning_curve_has_a_point_for_each_number_of_examples(dataset):
    async with laboratory(product()) as lab:
        none, four = await lab.learning_curve(dataset.agents, dataset.requests, (0, 4))

    assert (none.examples, four.examples) == (0, 4)
    assert none.lost is not None
    assert four.lost is not None
    assert none.lost.value > four.lost.value == 0


async def test_each_capability_has_a_unit_vector(dataset):
    async with laboratory(product()) as lab:
        vectors = await lab.vectors(dataset.agents)

    assert vectors.shape == (3, product().embedder.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


async def test_messages_are_planned(dataset):
    async with laboratory(product()) as lab:
        two, one = await lab.heard(dataset.agents, dataset.messages)

    assert two.intents == ("order", "weather")
    assert one.fate is Fate.EXACT


def test_the_sample_is_found_from_a_folder_within(tmp_path):
    dataset = sample(ROOT / "notebooks")

    assert (len(dataset.agents), len(dataset.requests), len(dataset.messages)) == (24, 141, 40)
    with pytest.raises(ConfigurationError, match="nor a folder above"):
        sample(tmp_path)


def test_the_shipped_decisions_are_of_the_sample():
    entries = sample_decisions(ROOT)

    names = set(sample(ROOT).agents)
    assert len(entries) > 400
    assert {one.capability for entry in entries for one in entry.decision.candidates} == names
    assert compare([entry.stored for entry in entries], Terms(), Terms()).unexplained == 0
    assert {entry.verdict for entry in entries} >= {None, "right", "wrong_capability"}
