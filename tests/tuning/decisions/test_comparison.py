"""Many decisions at once: who moves, who is refused, and what is to be expected of the rest."""

import pytest

from dispatcher.records import replace
from dispatcher.routing.calibration import Calibration
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


def test_a_question_to_the_person_is_refused_where_the_text_is_below_the_floor():
    asked = decision(
        candidate(rejection=Rejection.AMBIGUOUS),
        outcome=Outcome.CLARIFY,
        reason=Rejection.AMBIGUOUS.value,
        similarity=0.4,
    )

    assert compare(stored(asked), Terms(), Terms(similarity_floor=0.9)).counts == {Change.REFUSED: 1}
    assert compare(stored(asked), Terms(), Terms(similarity_floor=0.38)).counts == {Change.SAME: 1}


def test_what_the_fallback_capability_got_is_accepted_where_its_own_agent_would_get_it():
    net = candidate("net", "ask.anything", similarity=1.0, cosine=0.0, success=0.5)
    got = decision(
        net,
        reason="fallback",
        capability="ask.anything",
        similarity=1.0,
        winner="refund",
        contrast=0.2,
        refused_for=BELOW.value,
        own_similarity=0.3,
        own_candidates=(candidate("low", rejection=BELOW, similarity=0.3, score=0.6),),
    )
    same_agent = replace(got, own_candidates=(candidate("net", rejection=BELOW, similarity=0.3),))

    compared = compare(stored(got), Terms(), Terms(similarity_floor=0.25))

    assert (compared.counts, compared.moves) == ({Change.ACCEPTED: 1}, {("net", "low"): 1})
    assert compare(stored(got), Terms(), Terms(similarity_floor=0.35)).counts == {Change.SAME: 1}
    assert compare(stored(same_agent), Terms(), Terms(similarity_floor=0.25)).counts == {Change.ACCEPTED: 1}


def test_only_so_many_changed_rows_are_kept_and_all_are_counted():
    moved, same = decision(BUSY_BUT_GOOD, IDLE), decision(BUSY_BUT_GOOD)
    terms = Terms(), Terms(weights=HEADROOM)

    whole = compare(stored(*[moved, same] * 3), *terms)
    short = compare(stored(*[moved, same] * 3), *terms, most_changed=2)

    assert [row.stored.request_id for row in short.rows] == ["r0", "r2"]
    assert (short.decisions, short.different, len(whole.rows)) == (6, 3, 6)
    assert (short.counts, short.moves, short.after) == (whole.counts, whole.moves, whole.after)


def test_rows_do_not_hold_the_candidates():
    (row,) = compare(stored(decision(BUSY_BUT_GOOD, IDLE, left_out={"hours": 3})), Terms(), Terms()).rows

    assert (row.stored.request_id, row.stored.decision.text) == ("r0", "refund me")
    assert (row.stored.decision.candidates, row.stored.decision.left_out) == ((), {})


def test_decisions_of_another_encoder_are_counted_and_left_out():
    named = decision(BUSY_BUT_GOOD, encoder_id="old", scope_score=0.0, scope_floor=0.0)
    of_old = decision(BUSY_BUT_GOOD, encoder_id="old")
    own = Calibration(encoder_id="e", registry_version=1, kind="labelled 7", floor=0.1, curve=None)

    compared = compare(stored(of_old, decision(BUSY_BUT_GOOD), named), Terms(), Terms(calibration=own))

    assert (compared.other_encoder, compared.decisions) == (1, 2)
    assert compare(stored(of_old), Terms(), Terms()).other_encoder == 0


def test_what_people_would_go_on_getting_is_the_same():
    with_people = replace(REFUSED, outcome=Outcome.HANDED_OFF)

    assert compare(stored(with_people), Terms(), Terms(similarity_floor=0.4)).counts == {Change.SAME: 1}
