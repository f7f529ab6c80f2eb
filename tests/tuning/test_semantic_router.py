"""The comparison with semantic-router, as far as it is ours: halves, floors, ratios, files, our choices."""

from dataclasses import asdict, replace
from math import inf

import numpy as np
import pytest

from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.basis.product import encoding
from tests.comparison.figures import (
    Choice,
    best_floor,
    figures,
    fitting_half,
    floor_that_rejects,
    median_ratio,
    medians,
)
from tests.comparison.material import VECTORS, read_material, write_material
from tests.comparison.ours import OurSide
from tests.comparison.report import OURS, conclude, table
from tests.comparison.sample import TIMED, WARM, sample
from tests.tuning.sets import ASKED, STRANGE, WORDS, product, shop

RIGHT, WRONG = (True, True), (True, False)
OUTSIDE = (False, False)
NOT_THERE = {"wanted": [], "is_for_fitting": False, "chosen": "order", "accepted": False}


def choices(*rows):
    return [
        Choice(is_inside=inside, is_right=right, confidence=confidence)
        for (inside, right), confidence in rows
    ]


@pytest.fixture
async def side(tmp_path):
    used = product()
    with encoding(used, 100) as encoder:
        yield OurSide(product=used, encoder=encoder, dataset=read_dataset(shop(tmp_path / "shop")))


def test_the_rows_of_each_label_are_halved_in_turn():
    assert fitting_half(["a", "a", "b", "a", "b", "c"]) == (True, False, True, True, False, True)


def test_shares_are_of_the_rows_they_are_about():
    made = choices((RIGHT, 0.9), (RIGHT, 0.4), (WRONG, 0.9), (WRONG, 0.1), (OUTSIDE, 0.6), (OUTSIDE, 0.4))

    assert figures(made, 0.5) == {"top1": 0.5, "kept_right": 0.25, "rejected": 0.5, "balanced": 0.375}


def test_a_choice_at_the_floor_is_accepted():
    assert figures(choices((RIGHT, 0.5), (OUTSIDE, 0.5)), 0.5)["balanced"] == 0.5


def test_figures_that_have_no_rows_are_left_out():
    inside_alone = figures(choices((RIGHT, 0.5)), 0.5)

    assert inside_alone == {"top1": 1, "kept_right": 1, "rejected": None, "balanced": None}
    assert figures(choices((OUTSIDE, 0.5)), 0.6)["kept_right"] is None


def test_the_best_floor_is_the_best_of_all_that_could_be_tried():
    chance = np.random.default_rng(7)
    made = choices(
        *(
            ((RIGHT, WRONG, OUTSIDE)[chance.integers(3)], round(chance.random() + shift, 1))
            for shift in (0, 0.3)
            for _ in range(40)
        )
    )

    tried = [figures(made, floor)["balanced"] or 0.0 for floor in (*np.linspace(-0.1, 1.5, 200), inf)]

    assert figures(made, best_floor(made))["balanced"] == max(tried)


def test_where_every_acceptance_is_wrong_the_best_floor_refuses_everything():
    assert best_floor(choices((WRONG, 0.2), (OUTSIDE, 0.8))) == inf


def test_with_nothing_outside_the_best_floor_keeps_every_row():
    assert best_floor(choices((RIGHT, 0.2), (WRONG, 0.1), (RIGHT, 0.8))) == 0.1


@pytest.mark.parametrize(("share", "floor"), [(0, 0.1), (0.4, 0.4), (0.5, 0.4), (0.6, inf), (1, inf)])
def test_the_floor_that_rejects_as_many_is_the_lowest_that_does(share, floor):
    made = choices((RIGHT, 0.1), (OUTSIDE, 0.3), (RIGHT, 0.4), (OUTSIDE, 0.4))

    assert floor_that_rejects(made, share) == floor


def test_ratios_are_taken_within_a_round():
    assert median_ratio([1.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0
    assert medians([{"a": 1.0}, {"a": 5.0}, {"a": 2.0}]) == {"a": 2.0}


async def test_the_files_hold_every_text_once_with_its_vector_and_every_row_with_our_choice(side, tmp_path):
    written = await side.material()
    write_material(tmp_path, written)
    read = read_material(tmp_path)

    asked = {text: {name.lower()} for name, texts in ASKED.items() for text in texts}
    registered = {text for texts in WORDS.values() for text in texts} | {f"I do {name}" for name in WORDS}
    assert {row.text: set(row.wanted) for row in read.rows} == asked | {text: set() for text in STRANGE}
    assert set(read.texts) == registered | asked.keys() | set(STRANGE)
    assert len(read.texts) == len(set(read.texts)) == len(read.vectors)
    assert read.rows == written.rows
    assert [asdict(one) for one in read.routes] == [asdict(one) for one in written.routes]
    assert read.about["encoder"] == side.product.embedder.encoder_id
    for text, vector in read.vector_of().items():
        assert np.array_equal(vector, side.product.embedder.encode([text])[0])


async def test_the_halves_are_as_large_as_each_other_for_each_wish(side):
    material = await side.material()

    counts = [
        sorted(tuple(row.wanted) for row in material.half(for_fitting=fitted)) for fitted in (True, False)
    ]
    assert counts[0] == counts[1] == [()] * 2 + [("order",)] * 2 + [("refund",)] * 2 + [("weather",)] * 2


async def test_our_choices_are_those_of_the_product(side):
    rows = (await side.material()).rows

    found = figures([row.choice for row in rows], 1.0)
    assert found["top1"] == 1
    assert found["rejected"] == 1
    assert [row.choice.confidence for row in rows if not row.wanted] == [0.0] * len(STRANGE)


async def test_a_text_without_a_vector_is_noticed(side, tmp_path):
    write_material(tmp_path, await side.material())
    vectors = np.load(tmp_path / VECTORS)
    np.save(tmp_path / VECTORS, vectors[1:])

    with pytest.raises(ValueError, match="belong together"):
        read_material(tmp_path)


async def test_times_are_of_three_kinds_and_never_encode(side):
    material = await side.material()
    texts = [row.text for row in material.rows] * 2

    taken = await side.milliseconds(texts)

    assert taken.keys() == set(OURS)
    assert min(taken.values()) > 0


async def test_the_sample_is_spread_over_all_rows_and_holds_no_text_twice(side):
    row = (await side.material()).rows[0]
    rows = [replace(row, text=f"text {number // 2}") for number in range(2000)]

    chosen = sample(rows)

    assert len(chosen) == len(set(chosen)) == TIMED + WARM
    assert chosen[0] == "text 0"
    assert chosen[-1] > "text 99"
    assert sample(rows[:6]) == ["text 0", "text 1", "text 2"]


async def test_we_are_compared_with_the_best_setting_for_each_figure_and_with_the_fastest(side):
    material = await side.material()
    shares = {"kept_right": 0.5, "rejected": 0.5, "balanced": 0.5, "kept_at_our_rejection": 0.25}
    measured = {
        "version": "1",
        "settings": [
            {"name": "slow", "top1": 0.75, **shares},
            {"name": "fast", "top1": 0.5, **shares, "rejected": 0.9},
        ],
    }
    round_ = {"ours, ranking": 1.0, "ours": 2.0, "ours, known": 0.5, "slow": 8.0, "fast": 4.0}

    report = conclude(material, measured, [round_, {**round_, "slow": 10.0}, round_])

    assert report["points_better"]["top1"] == 25.0
    assert report["points_better"]["rejected"] == 10.0
    assert report["times_faster"]["the fastest"] == {"ours, ranking": 4.0, "ours": 2.0, "ours, known": 8.0}
    assert report["times_faster"]["the most accurate"]["ours"] == 4.0
    assert report["rows"] == {"fitted": 8, "inside": 6, "outside": 2}
    lines = list(table(report))
    assert lines[2].startswith("| ours | 1.000 |")
    assert {line.split(" | ")[0] for line in lines[3:5]} == {"| slow", "| fast"}
