"""Registries drawn from a data set: who is inside, near and far, and what replicas and twins change."""

from dataclasses import replace

import pytest

from dispatcher.errors import RequestError
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.evaluation.draws import LEAST, MOST_NEAR, DrawRules, draw, measure, summary
from tests.tuning.sets import agent, product, request, shop, tell, write


@pytest.fixture
def dataset(tmp_path):
    return read_dataset(shop(tmp_path / "shop"))


async def drawn(dataset, **rules):
    return await measure(draw(dataset, DrawRules(**rules)), product(), tell)


def test_a_sample_parts_the_requests_by_what_is_registered(dataset):
    both = replace(dataset.requests[0], wanted=frozenset(dataset.agents))
    (sample,) = draw(replace(dataset, requests=(*dataset.requests, both)), DrawRules(size=2, draws=1)).samples

    known = set(sample.capabilities)
    assert len(known) == 2
    assert {one for row in sample.inside for one in row.wanted} == known
    assert all(row.wanted.isdisjoint(known) and row.wanted for row in sample.near)
    assert (len(sample.inside), len(sample.near), len(sample.far)) == (8, 4, 4)
    assert both not in sample.rows, "a part of what it wants is registered"


def test_the_same_seed_draws_the_same_registries(dataset):
    def names(seed):
        return [one.capabilities for one in draw(dataset, DrawRules(size=2, seed=seed)).samples]

    assert names(1) == names(1) != names(2)
    assert len(names(1)) == 30


def test_capabilities_that_are_asked_for_are_drawn_first(tmp_path):
    folder = write(
        tmp_path, agents=[agent(f"a{n}") for n in range(50)], eval=[request("hi", "a7"), request("ho", "a9")]
    )
    read = read_dataset(folder)

    one = draw(read, DrawRules(size=1)).samples
    three = draw(read, DrawRules(size=3)).samples

    assert {name for sample in one for name in sample.capabilities} == {"a7", "a9"}
    assert all({"a7", "a9"} < set(sample.capabilities) for sample in three)


def test_near_requests_are_bounded(dataset):
    many = tuple(replace(dataset.requests[0], text=f"order {n}") for n in range(MOST_NEAR + 100))
    rows = replace(dataset, requests=(*many, *dataset.requests[4:]))

    samples = draw(rows, DrawRules(size=1)).samples

    assert max(len(sample.near) for sample in samples) == MOST_NEAR


@pytest.mark.parametrize("size", [0, 4])
def test_more_capabilities_than_there_are_cannot_be_drawn(dataset, size):
    with pytest.raises(RequestError, match=f"has 3 capabilities, not {size}"):
        draw(dataset, DrawRules(size=size))


def test_without_requests_for_one_capability_nothing_is_drawn(dataset):
    with pytest.raises(RequestError, match="no requests for one capability"):
        draw(replace(dataset, requests=()), DrawRules(size=2))


async def test_a_report_has_the_shares_of_every_draw_and_their_worst(dataset):
    report = await drawn(dataset, size=2, draws=4)

    assert len(report["draws"]) == 4
    for name, pick in {"lost": max, "far": max, "near": max, "top1": min}.items():
        values = [one[name] for one in report["draws"]]
        assert report[name] == pytest.approx(sum(values) / 4, abs=1e-4)
        assert report["worst"][name] == pick(values)
    assert set(report["changed"].values()) == {0.0}
    assert report["top1"] == 1
    assert report["versions"]["index"] == "exact"


async def test_a_twin_that_wins_is_right(dataset):
    report = await drawn(dataset, size=2, replicas=2, twins=2, draws=4)

    assert report["top1"] == 1
    assert (report["replicas"], report["twins"]) == (2, 2)


async def test_a_whole_registry_has_nothing_near(dataset):
    report = await drawn(dataset, size=3, draws=1)

    assert report["near"] is None
    assert report["left_out"]["near"] == "every capability is registered"


def test_what_changed_is_told_draw_by_draw():
    plain = [{"lost": 0.1, "top1": 1.0}, {"lost": 0.3, "top1": 1.0}]
    changed = [{"lost": 0.2, "top1": 1.0}, {"lost": 0.2, "top1": 0.5}]

    found = summary(changed, plain, LEAST, 0)

    assert (found["lost"], found["worst"]["lost"], found["changed"]["lost"]) == (0.2, 0.2, 0.0)
    assert (found["worst"]["top1"], found["changed"]["top1"]) == (0.5, -0.25)
    assert (found["far"], found["near"]) == (None, None)


async def test_registered_texts_are_not_asked_but_counted(dataset):
    known = replace(dataset.requests[0], text="ORDER status")
    more = replace(dataset, requests=(*dataset.requests, known))

    report = await drawn(more, size=3, draws=1)

    assert report["registered_texts"] == 2
    assert known not in draw(more, DrawRules(size=3, draws=1)).samples[0].rows


@pytest.mark.parametrize(
    ("rules", "different"), [({"size": 3, "draws": 12}, 1), ({"size": 2, "draws": 1}, 1)]
)
async def test_the_same_registry_drawn_again_has_no_interval(dataset, rules, different):
    report = await drawn(dataset, **rules)

    assert report["different_draws"] == different
    assert (report["top1"], report["counts"]["top1"]) == (1, rules["draws"])
    assert report["intervals"] == {}
    assert report["left_out"]["top1"] == f"no interval: 1 different registries drawn, of {LEAST} needed"


def test_twins_of_other_capabilities_are_another_registry(dataset):
    assert draw(dataset, DrawRules(size=3, draws=12)).different == 1
    assert draw(dataset, DrawRules(size=3, twins=1, draws=12)).different == 3


def test_draws_that_all_give_the_same_leave_room_for_others():
    shares = [{"lost": 0.0, "top1": 1.0}] * LEAST

    found = summary(shares, shares, LEAST, 0)

    assert found["intervals"] == {"lost": [0.0, 0.2775], "top1": [0.7225, 1.0]}
