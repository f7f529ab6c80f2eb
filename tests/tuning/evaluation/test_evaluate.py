"""A small data set through the real router, planner, choice and live view."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dispatcher import records
from dispatcher.routing.rules import ClarifyRules
from dispatcher.tuning.basis.dataset import read_dataset
from dispatcher.tuning.basis.fleet import StandingStill, fleet
from dispatcher.tuning.basis.metrics import share
from dispatcher.tuning.basis.product import encoding, register
from dispatcher.tuning.basis.versions import code_version
from dispatcher.tuning.evaluation.asking import NO_SPREAD, NO_UNSEEN, WARM
from dispatcher.tuning.evaluation.busy import (
    ALL_ASKED,
    NO_ACCEPTED,
    NO_RIGHT,
    NOBODY_CHOSEN,
    REPLICAS,
    BusyChoice,
    busy_figures,
    choose,
)
from dispatcher.tuning.evaluation.evaluate import KEYS, evaluate
from dispatcher.tuning.evaluation.routed import NO_MESSAGES, NO_OUTSIDE, NO_REQUESTS
from tests.tuning.sets import ASKED, WORDS, Recording, Ticking, agent, product, request, shop, tell, write

BACK = BusyChoice(is_right=True, stays_right=None, load=None, is_asked_back=True)
NOBODY = BusyChoice(is_right=True, stays_right=None, load=None)
WRONG = BusyChoice(is_right=False, stays_right=False, load=0.6)
KEPT = BusyChoice(is_right=True, stays_right=True, load=0.2)
SPEEDS = {"ms_p50", "ms_p95", "ms_two_p50", "ms_two_p95"}


@pytest.fixture
def dataset(tmp_path):
    return read_dataset(shop(tmp_path / "shop"))


async def report_of(dataset, used=None, seed=0):
    return await evaluate(dataset, used or product(), seed=seed, tell=tell)


async def test_all_figures_are_there_with_interval_count_and_versions(dataset):
    report = await report_of(dataset)

    given = {name for name in KEYS if report[name] is not None}
    assert given == set(KEYS) - {"ms_two_p50", "ms_two_p95"}
    assert report["left_out"] == dict.fromkeys(("ms_two_p50", "ms_two_p95"), NO_UNSEEN)
    assert report["intervals"].keys() == report["counts"].keys() == given
    assert all(low <= report[name] <= high for name, (low, high) in report["intervals"].items())
    assert report["versions"] == {
        "encoder": product().embedder.encoder_id,
        "index": "exact",
        "code": code_version(),
        "data": dict(dataset.files),
    }


async def test_requests_that_share_their_agents_words_are_right_and_the_list_says_which_are_not(dataset):
    swapped = replace(dataset.requests[0], wanted=dataset.requests[4].wanted)

    report = await report_of(replace(dataset, requests=(swapped, *dataset.requests[1:])))

    assert report["top1"] == pytest.approx(11 / 12, abs=1e-4)
    assert report["confusions"] == [{"wanted": "refund", "won": "order", "count": 1}]
    assert report["by_agent"]["refund"]["of"] == 5
    assert report["oos_auroc"] > 0.9


async def test_the_same_seed_gives_the_same_figures(dataset):
    one, again = [await report_of(dataset, seed=3) for _ in range(2)]
    other = await report_of(dataset, seed=4)

    def stable(report):
        return {name: report[name] for name in KEYS if name not in SPEEDS}

    assert stable(one) == stable(again)
    assert one["mean_load"] != other["mean_load"]


async def test_the_winning_capability_keeps_the_request_whatever_the_loads(dataset):
    report = await report_of(dataset)

    assert report["overturned"] == 0
    assert report["mean_load"] < 0.5


async def test_a_wide_margin_lets_load_overturn_what_was_right(tmp_path):
    near = {"left": "turn the left lamp on", "right": "turn the right lamp on"}
    folder = write(
        tmp_path,
        agents=[agent(name, [text, f"{text} now", f"please {text}"]) for name, text in near.items()],
        eval=[request(f"turn the lamp on, {number}", name) for number in range(20) for name in near],
    )

    report = await report_of(read_dataset(folder), product(margin=1.0))

    assert report["overturned"] > 0.2
    assert report["left_out"]["oos_rejected"] == NO_OUTSIDE


async def test_a_set_of_messages_alone_leaves_the_other_figures_out(tmp_path, dataset):
    report = await report_of(replace(dataset, requests=()))

    assert report["top1"] is report["ece"] is report["ms_p50"] is None
    assert report["left_out"]["top1"] == report["left_out"]["ms_p50"] == NO_REQUESTS
    assert report["multi_exact"] == report["multi_f1"] == 1


async def test_without_messages_their_figures_are_left_out(dataset):
    report = await report_of(replace(dataset, messages=()))

    assert report["multi_exact"] is None
    assert report["left_out"]["multi_f1"] == report["left_out"]["ms_two_p50"] == NO_MESSAGES


async def test_what_is_timed_was_never_encoded_before_and_comes_alone(dataset):
    recording = Recording()

    await report_of(dataset, product(recording))

    alone = [batch[0] for batch in recording.batches if len(batch) == 1]
    asked = {text for texts in ASKED.values() for text in texts}
    declared = {text for texts in WORDS.values() for text in texts}
    assert asked <= set(alone)
    assert not declared & set(alone)
    every = [text for batch in recording.batches for text in batch]
    assert len(every) == len(set(every)), "a text was encoded twice"


async def test_messages_of_two_wishes_are_timed_as_a_whole(dataset):
    two = [replace(dataset.messages[0], text=f"what about order {n}? how is the weather?") for n in range(9)]

    report = await report_of(replace(dataset, messages=tuple(two)), replace(product(), clock=Ticking()))

    assert report["counts"]["ms_two_p50"] == 9 - WARM
    assert report["counts"]["ms_p50"] == 16 - WARM
    assert 0 < report["ms_p50"] < report["ms_two_p50"]


async def test_times_that_are_all_the_same_have_no_interval(dataset):
    report = await report_of(dataset, replace(product(), clock=StandingStill()))

    assert (report["ms_p50"], report["counts"]["ms_p50"]) == (0, 16 - WARM)
    assert report["left_out"]["ms_p50"] == NO_SPREAD
    assert "ms_p50" not in report["intervals"]


async def test_a_state_is_drawn_for_every_agent_of_the_ranked_capabilities(dataset):
    used = product()
    with encoding(used, 100) as encoder:
        registry = await register(used, encoder, fleet(dataset.agents, replicas=REPLICAS))
        (ranking,) = await registry.router.rank([dataset.requests[0].text])
        choice = choose(registry, ranking, dataset.requests[0], random.Random(1))
        refused = choose(
            registry, records.replace(ranking, in_scope=False), dataset.requests[0], random.Random(1)
        )
    loads = {registry.view.status(one.agent_id).load for one in registry.view.agents()}
    first = ranking.capabilities[0].capability
    rates = {registry.view.success(one.agent_id, first) for one in registry.view.group(first)}

    assert len(loads) == 9
    assert len(rates) == REPLICAS
    assert choice is not None
    assert (choice.is_right, choice.stays_right) == (True, True)
    assert choice.load in loads
    assert refused is None


async def test_repeated_texts_are_asked_again_and_counted(dataset):
    again = replace(dataset.requests[0], text=dataset.requests[0].text.upper())

    report = await report_of(replace(dataset, requests=(*dataset.requests, again)))

    assert (report["repeated_texts"], report["counts"]["top1"]) == (1, 13)


async def test_what_calibration_takes_for_one_thing_under_two_names_is_right_beside_top1(tmp_path):
    texts = ["track my parcel please", "find my parcel", "where may my parcel be"]
    both = ("parcel", "shipment")
    folder = write(
        tmp_path,
        agents=[*(agent(name, texts) for name in both), agent("rain", ["will it rain"])],
        eval=[request(f"please {text}", name) for text in texts for name in both],
    )

    report = await report_of(read_dataset(folder))

    assert report["registry"]["twins"] == [["parcel", "shipment"]]
    assert report["top1"] < report["top1_or_twin"] == 1


async def test_a_person_who_is_asked_has_not_found_nobody(tmp_path):
    near = {"left": "turn the left lamp on", "right": "turn the right lamp on"}
    folder = write(
        tmp_path,
        agents=[agent(name, [text, f"{text} now", f"please {text}"]) for name, text in near.items()],
        eval=[request("turn the lamp on", "left"), request("turn the left lamp on at once", "left")],
    )
    used = product()
    asking = replace(used, rules=replace(used.rules, clarify=ClarifyRules(margin=0.9)))

    report = await report_of(read_dataset(folder), asking)

    assert report["asked_back"] > 0
    assert report["unavailable"] in {0, None}


@pytest.mark.parametrize(
    ("choices", "reasons"),
    [
        ([], dict.fromkeys(("asked_back", "unavailable", "overturned", "mean_load"), NO_ACCEPTED)),
        ([BACK], dict.fromkeys(("unavailable", "overturned", "mean_load"), ALL_ASKED)),
        ([BACK, NOBODY], dict.fromkeys(("overturned", "mean_load"), NOBODY_CHOSEN)),
        ([BACK, NOBODY, WRONG], {"overturned": NO_RIGHT}),
        ([BACK, NOBODY, WRONG, KEPT], {}),
    ],
)
def test_each_figure_under_load_is_left_out_for_its_own_reason(choices, reasons):
    figures = busy_figures(choices, np.random.default_rng(0))

    assert figures.left_out == reasons
    assert set(figures.found) == {"asked_back", "unavailable", "overturned", "mean_load"} - set(reasons)


def test_who_is_asked_counts_neither_as_unavailable_nor_as_overturned():
    found = busy_figures([BACK, NOBODY, WRONG, KEPT], np.random.default_rng(0)).found

    assert found["asked_back"] == share(1, 4)
    assert found["unavailable"] == share(1, 3)
    assert found["overturned"] == share(0, 1)
    assert found["mean_load"].value == pytest.approx(0.4)


async def test_registered_texts_are_not_asked_but_counted(dataset):
    first = dataset.requests[0]
    known = [replace(first, text=text) for text in (WORDS["Order"][0].upper(), " I do  Order")]

    report = await report_of(replace(dataset, requests=(*dataset.requests, *known)))

    assert report["counts"]["top1"] == 12
    assert report["counts"]["multi_exact"] == 1, "one of both messages is an example"
    assert (report["registered_texts"], report["requests"]) == (3, 18)
