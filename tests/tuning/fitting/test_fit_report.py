"""What a fit is worth beside self-calibration, on the same rows."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration, Observed
from dispatcher.routing.curve import Curve, Rows
from dispatcher.tuning.fitting.calibration_fit import Ground, Judged, judge
from dispatcher.tuning.fitting.calibration_rows import Scored
from dispatcher.tuning.fitting.fit_figures import differences, figures, top1_or_twin
from dispatcher.tuning.fitting.fit_report import Origin, measured

ORDER, REFUND = Capability("order.query"), Capability("refund.pay")
CHANCE = 7
ORIGIN = Origin(
    kind="labelled",
    source={"file": "eval.jsonl", "sha256": "12ab"},
    left_out={"same text again": 2},
    seed=1,
    code="0.1.0+12ab",
)


def _rows(*scores: float, right: bool = True) -> Rows:
    return Rows(score=np.array(scores), right=np.full(len(scores), right), weight=np.full(len(scores), 1.0))


GROUND = Ground(
    encoder_id="e",
    registry_version=3,
    capabilities=2,
    observed=Observed(
        inside=_rows(*np.linspace(0.2, 0.6, 9)),
        outside=_rows(*np.linspace(-0.1, 0.1, 9), right=False),
        left_out=None,
    ),
    reference=None,
    similarity_floor=0.35,
)
OWN = Calibration(
    encoder_id="e", registry_version=3, kind="self", floor=0.2, curve=Curve(slope=10.0, intercept=-3.0)
)


def scored(score: float, wanted: Capability | None) -> Scored:
    return Scored(wanted=frozenset() if wanted is None else frozenset({wanted}), winner=ORDER, score=score)


ROWS = [scored(float(0.8 + one), ORDER) for one in np.linspace(-0.05, 0.05, 300)] + [
    scored(float(0.5 + one), None) for one in np.linspace(-0.05, 0.05, 300)
]


def test_figures_are_what_eval_calls_them():
    calibration = replace(OWN, floor=0.5, curve=Curve(slope=0.0, intercept=0.0))
    rows = [
        scored(0.9, ORDER),
        scored(0.9, REFUND),
        scored(0.4, ORDER),
        scored(0.9, ORDER),
        scored(0.9, None),
        scored(0.1, None),
    ]

    found = figures(judge(rows, calibration, 0.35), np.random.default_rng(CHANCE))

    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {"in_scope_lost": 0.25, "oos_rejected": 0.5, "ece": 0.0}
    )
    assert top1_or_twin(rows).value == 0.75
    assert top1_or_twin(rows).low < 0.75 < top1_or_twin(rows).high
    assert judge([], calibration, 0.35) == []


def test_a_difference_is_of_the_same_rows_and_much_surer_than_its_two_figures():
    rows = [scored(1.0, ORDER)] * 100 + [scored(0.0, None)] * 100
    before = [Judged(row=row, accepted=at % 100 >= 20, similarity=0.5) for at, row in enumerate(rows)]
    after = [replace(one, accepted=at % 100 >= 30, similarity=0.6) for at, one in enumerate(before)]

    found = differences(before, after, np.random.default_rng(CHANCE))
    marginal = figures(before, np.random.default_rng(CHANCE))["in_scope_lost"]

    assert found["in_scope_lost"].value == pytest.approx(0.1)
    assert found["oos_rejected"].value == pytest.approx(0.1)
    assert found["ece"].value == pytest.approx(0.1)
    lost = found["in_scope_lost"]
    assert 0 < lost.low < 0.1 < lost.high
    assert lost.high - lost.low < 0.8 * (marginal.high - marginal.low)


def test_of_the_same_judgements_nothing_differs():
    judged = judge(ROWS, OWN, 0.35)

    found = differences(judged, judged, np.random.default_rng(CHANCE))

    assert {one.value for one in found.values()} == {0.0}
    assert all(-0.02 < one.low <= 0 <= one.high < 0.02 for one in found.values())


def test_a_report_has_all_columns_and_repeats_with_its_seed():
    first, again, other = (measured(ROWS, OWN, GROUND, replace(ORIGIN, seed=seed)) for seed in (1, 1, 2))

    assert first == again
    assert first.figures != other.figures
    rejected = first.figures["oos_rejected"]
    assert rejected.own.value == 0.0
    assert rejected.fitted.low > 0.5
    assert rejected.difference.value == pytest.approx(rejected.fitted.value)
    assert first.top1_or_twin.value == 1.0


def test_the_stored_report_says_what_it_was_made_of():
    made = measured(ROWS, OWN, GROUND, ORIGIN)

    assert made.document["source"] == {"file": "eval.jsonl", "sha256": "12ab"}
    assert made.document["code"] == "0.1.0+12ab"
    assert made.document["rows"] == {"inside": 300, "outside": 300, "left_out": {"same text again": 2}}
    assert set(made.document["figures"]["ece"]) == {"self", "fitted", "difference"}
    assert made.document["figures"]["oos_rejected"]["self"]["of"] == 300
    assert "300 texts in scope and 300 out of scope" in made.sentence
    assert made.sentence.endswith("left out: 2 same text again")
    assert replace(made, origin=replace(ORIGIN, left_out={})).sentence.endswith("left out: none")
