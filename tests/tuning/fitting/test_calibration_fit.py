"""Calibrations from judged rows: what they learn, and that they are measured on other rows."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Observed
from dispatcher.routing.curve import Rows
from dispatcher.routing.reference import BINS, Reference, ReferenceSize
from dispatcher.tuning.fitting.calibration_fit import (
    FOLDS,
    LEAST,
    LEAST_OF_ONE,
    Ground,
    check_rows,
    cross_validate,
    fit_rows,
    judge,
)
from dispatcher.tuning.fitting.calibration_rows import Scored

ORDER, REFUND = Capability("order.query"), Capability("refund.pay")


def _rows(*scores: float, right: bool = True) -> Rows:
    return Rows(score=np.array(scores), right=np.full(len(scores), right), weight=np.full(len(scores), 1.0))


OBSERVED = Observed(
    inside=_rows(*np.linspace(0.2, 0.6, 9)),
    outside=_rows(*np.linspace(-0.1, 0.1, 9), right=False),
    left_out=None,
)
GROUND = Ground(
    encoder_id="e",
    registry_version=3,
    capabilities=2,
    observed=OBSERVED,
    reference=None,
    similarity_floor=0.35,
)
CHANCE = 7


def scored(score: float, wanted: Capability | None, winner: Capability | None = ORDER) -> Scored:
    return Scored(wanted=frozenset() if wanted is None else frozenset({wanted}), winner=winner, score=score)


def _sample(count: int, inside: float, outside: float, capability: Capability = ORDER) -> list[Scored]:
    """So many rows of each side, around two scores."""
    spread = np.linspace(-0.05, 0.05, count)
    rows = [scored(float(inside + one), capability, capability) for one in spread]
    return rows + [scored(float(outside + one), None, capability) for one in spread]


def test_the_floor_lies_between_what_was_asked_for_and_what_was_not():
    fitted = fit_rows(_sample(200, 0.8, 0.5), GROUND, "labelled")

    assert 0.55 < fitted.floor < 0.76
    assert (fitted.kind, fitted.encoder_id, fitted.registry_version) == ("labelled", "e", 3)
    assert fitted.similarity_of(0.8) > 0.8
    assert fitted.similarity_of(0.4) < 0.35


def test_a_few_rows_move_it_a_little_from_what_the_registry_says():
    few, many = (fit_rows(_sample(count, 0.8, 0.5), GROUND, "labelled").floor for count in (5, 300))

    assert few < many


def test_reference_rows_stand_in_for_the_registrys_own():
    low = np.zeros(BINS)
    low[30] = 1.0
    high = np.zeros(BINS)
    high[50] = 1.0
    size = ReferenceSize(right=high, wrong=np.zeros(BINS), outside=low)
    referred = replace(GROUND, reference=Reference(encoder_id="e", sizes={2: size}))

    fitted = fit_rows(_sample(30, 0.8, 0.5), referred, "traffic")

    assert fitted.floor != fit_rows(_sample(30, 0.8, 0.5), GROUND, "traffic").floor


def test_a_registry_without_examples_gives_rows_of_one_side():
    bare = replace(GROUND, observed=replace(OBSERVED, inside=None))

    assert 0.4 < fit_rows(_sample(100, 0.8, 0.5), bare, "labelled").floor < 0.76


def test_a_capability_with_enough_of_both_gets_a_floor_of_its_own_drawn_to_the_common_one():
    rows = _sample(200, 0.5, 0.2) + _sample(60, 0.9, 0.6, REFUND)

    fitted = fit_rows(rows, GROUND, "labelled")

    assert fitted.floor < fitted.floors[REFUND] < 0.75
    assert fitted.floor_of(REFUND) == fitted.floors[REFUND]


@pytest.mark.parametrize(("inside", "outside"), [(LEAST_OF_ONE - 1, 100), (100, LEAST_OF_ONE - 1)])
def test_one_with_too_few_of_either_has_none(inside, outside):
    rows = [scored(0.9, REFUND, REFUND)] * inside + [scored(0.6, None, REFUND)] * outside

    assert REFUND not in fit_rows(_sample(50, 0.5, 0.2) + rows, GROUND, "labelled").floors


def test_rows_that_another_capability_won_say_nothing_of_its_floor():
    wrong = [scored(0.9, ORDER, REFUND)] * 50 + [scored(0.6, None, REFUND)] * 50
    unranked = [scored(0.0, None, None)] * 50

    assert REFUND not in fit_rows(_sample(50, 0.5, 0.2) + wrong + unranked, GROUND, "labelled").floors


@pytest.mark.parametrize(("inside", "outside"), [(LEAST - 1, 100), (100, LEAST - 1), (0, 0)])
def test_too_few_rows_are_refused_with_their_numbers(inside, outside):
    rows = [scored(0.9, ORDER)] * inside + [scored(0.1, None)] * outside

    with pytest.raises(RequestError, match=f"there are {inside} and {outside}") as refused:
        check_rows(rows)
    assert refused.value.error_code == "too_few_rows"
    check_rows([scored(0.9, ORDER)] * LEAST + [scored(0.1, None)] * LEAST)


def test_every_row_is_judged_once_by_what_did_not_see_it():
    rows = _sample(40, 0.8, 0.5) + _sample(10, 0.8, 0.5, REFUND)

    judged = cross_validate(rows, GROUND, "labelled", np.random.default_rng(CHANCE))

    assert list(map(id, (one.row for one in judged))) == list(map(id, rows)), "not in the order given"
    seen = fit_rows(rows, GROUND, "labelled")
    assert {one.similarity for one in judged} != {one.similarity for one in judge(rows, seen, 0.35)}


def test_a_row_far_from_all_others_does_not_vouch_for_itself():
    rows = _sample(40, 0.8, 0.5)
    moved = [scored(1.0, None), *rows[1:]]

    judged = cross_validate(moved, GROUND, "labelled", np.random.default_rng(CHANCE))

    odd = judged[0]
    assert odd.accepted
    assert odd.similarity > fit_rows(moved, GROUND, "labelled").similarity_of(1.0) + 0.005


def test_each_capability_is_in_every_fold():
    inside = [scored(0.8, ORDER)] * FOLDS + [scored(0.8, REFUND, REFUND)] * 2 * FOLDS
    wrong = [scored(0.7, REFUND, ORDER)] * FOLDS
    outside = [scored(one, None) for one in np.linspace(0.3, 0.6, 3 * FOLDS).tolist()]
    rows = [*inside, *wrong, *outside]

    judged = cross_validate(rows, GROUND, "labelled", np.random.default_rng(CHANCE))

    # Of one score, so that a similarity tells the fold.
    folds = [{one.similarity for one in judged[start:end]} for start, end in ((0, 5), (5, 15), (15, 20))]
    assert [len(one) for one in folds] == [FOLDS] * 3
    assert folds[0] == folds[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("count", "accepted"), [(LEAST_OF_ONE - 1, LEAST_OF_ONE - 1), (LEAST_OF_ONE, 0), (LEAST_OF_ONE + 1, 0)]
)
def test_a_floor_of_its_own_is_measured_in_every_fold_or_there_is_none(count, accepted, seed):
    own = [scored(0.9, REFUND, REFUND)] * count + [scored(0.37, None, REFUND)] * count
    wrong = [scored(0.9, REFUND, ORDER)] * 17
    rows = [*own, *wrong, *_sample(200, 0.5, 0.2)]

    judged = cross_validate(rows, GROUND, "labelled", np.random.default_rng(seed))

    assert (REFUND in fit_rows(rows, GROUND, "labelled").floors) is (accepted == 0)
    strangers = [one for one in judged if one.row.winner == REFUND and not one.row.wanted]
    assert sum(one.accepted for one in strangers) == accepted
