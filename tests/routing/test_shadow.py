"""What a calibration in shadow would have said, and what it costs to ask it."""

import pytest

from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve
from dispatcher.routing.decision import Outcome
from dispatcher.routing.shadow import Shadow, ShadowScope, shadow_decision

ORDER, REFUND = Capability("order.query"), Capability("refund.pay")
ASKED = Shadow(
    number=7,
    calibration=Calibration(
        encoder_id="e",
        registry_version=1,
        kind="labelled 7",
        floor=0.2,
        curve=Curve(slope=10.0, intercept=0.0),
        floors={ORDER: 0.4},
    ),
)


@pytest.mark.parametrize(
    ("winner", "score", "floor", "in_scope"),
    [(ORDER, 0.3, 0.4, False), (ORDER, 0.4, 0.4, True), (REFUND, 0.3, 0.2, True), (REFUND, 0.19, 0.2, False)],
)
def test_each_winner_has_its_own_floor_or_the_common_one(winner, score, floor, in_scope):
    scope = ASKED.scope(winner, score, 0.35)

    assert (scope.number, scope.scope_floor, scope.in_scope) == (7, floor, in_scope)
    assert scope.similarity == pytest.approx(float(ASKED.calibration.similarity(score)))


def test_the_floor_on_similarity_holds_as_well():
    assert not ASKED.scope(REFUND, 0.2, 0.9).in_scope


@pytest.mark.parametrize(
    ("in_scope", "outcome", "was_refused", "expected"),
    [
        (True, Outcome.UNAVAILABLE, False, Outcome.UNAVAILABLE),
        (True, Outcome.OUT_OF_SCOPE, True, Outcome.SELECTED),
        (True, Outcome.OUT_OF_SCOPE, False, Outcome.OUT_OF_SCOPE),
        (False, Outcome.SELECTED, False, Outcome.OUT_OF_SCOPE),
    ],
)
def test_only_scope_changes_what_becomes_of_a_text(in_scope, outcome, was_refused, expected):
    scope = ShadowScope(number=7, in_scope=in_scope, similarity=0.5, scope_floor=0.2)

    decided = shadow_decision(scope, outcome, was_refused=was_refused)

    assert decided is not None
    assert (decided.number, decided.outcome, decided.similarity, decided.scope_floor) == (
        7,
        expected,
        0.5,
        0.2,
    )


def test_without_one_there_is_nothing_to_say():
    assert shadow_decision(None, Outcome.SELECTED, was_refused=False) is None
