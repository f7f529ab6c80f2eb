"""Many decisions at once: who moves, who is refused, and what is to be expected of the rest."""

from dataclasses import replace

import pytest

from dispatcher.routing.decision import Outcome, Rejection, Weights
from dispatcher.tuning.decisions.comparison import Change, compare
from dispatcher.tuning.decisions.replay import Terms
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision, stored

BELOW = Rejection.BELOW_SCOPE_FLOOR
HEADROOM = Weights(similarity=0.5, success=0.1, headroom=0.4)


REFUSED = decision(
    candidate("low", rejection=BELOW, score=0.6),
    outcome=Outcome.OUT_OF_SCOPE,
    similarity=0.3,
    reason=BELOW.value,
)


def test_nothing_changes_under_the_terms_in_force():
    compared = compare(stored(decision(BUSY_BUT_GOOD, IDLE), REFUSED), Terms(), Terms())

    assert compared.counts == {Change.SAME: 2}
    assert not compared.changed
    assert compared.before == compared.after


def test_moves_are_counted_from_whom_to_whom_with_what_is_to_be_expected():
    rows = stored(decision(BUSY_BUT_GOOD, IDLE), decision(BUSY_BUT_GOOD, IDLE), decision(BUSY_BUT_GOOD))

    compared = compare(rows, Terms(), Terms(weights=HEADROOM))

    assert compared.moves == {("good", "idle"): 2}
    assert [row.stored.request_id for row in compared.changed] == ["r0", "r1"]
    assert compared.before.success == pytest.approx(1.0)
    assert compared.after.success == pytest.approx((0.7 + 0.7 + 1.0) / 3)
    assert compared.before.load == pytest.approx(0.8)
    assert compared.after.load == pytest.approx((0.4 + 0.4 + 0.8) / 3)


@pytest.mark.parametrize(
    ("terms", "change", "move"),
    [
        (Terms(similarity_floor=0.25), Change.ACCEPTED, ("out_of_scope", "low")),
        (Terms(similarity_floor=0.9), Change.REFUSED, ("good", "out_of_scope")),
        (Terms(composite_floor=0.8), Change.UNAVAILABLE, ("good", "unavailable")),
    ],
)
def test_each_kind_of_change_has_its_name(terms, change, move):
    compared = compare(stored(decision(BUSY_BUT_GOOD), REFUSED), Terms(), terms)

    assert compared.counts[change] == 1
    assert compared.moves == {move: 1}


def test_an_agent_that_only_other_terms_would_take_is_served():
    weak = candidate(
        "weak", rejection=Rejection.BELOW_COMPOSITE_FLOOR, success=0.0, similarity=0.4, headroom=0.5
    )
    unserved = decision(
        weak, outcome=Outcome.UNAVAILABLE, similarity=0.4, reason=Rejection.BELOW_COMPOSITE_FLOOR.value
    )

    compared = compare(stored(unserved), Terms(), Terms(composite_floor=0.2))

    assert compared.counts == {Change.SERVED: 1}
    assert compared.before.chosen == 0
    assert compared.before.success is None


def test_what_does_not_come_out_as_recorded_is_counted_and_left_out():
    impossible = decision(candidate("low", score=0.1), candidate("high", rejection=BELOW, success=1.0))

    compared = compare(stored(impossible, REFUSED), Terms(), Terms())

    assert (compared.unexplained, len(compared.rows)) == (1, 1)


def test_what_people_took_was_refused_by_the_floors():
    with_people = replace(REFUSED, outcome=Outcome.HANDED_OFF)

    compared = compare(stored(with_people), Terms(), Terms(similarity_floor=0.25))

    assert compared.counts == {Change.ACCEPTED: 1}


def test_what_people_would_go_on_getting_is_the_same():
    with_people = replace(REFUSED, outcome=Outcome.HANDED_OFF)

    assert compare(stored(with_people), Terms(), Terms(similarity_floor=0.4)).counts == {Change.SAME: 1}
