"""What other terms would have been worth."""

import pytest

from dispatcher.identifiers import RequestId
from dispatcher.routing.decision import Weights
from dispatcher.tuning.decisions.comparison import Change, compare
from dispatcher.tuning.decisions.decision_log import Entry
from dispatcher.tuning.decisions.replay import StoredDecision, Terms
from dispatcher.tuning.decisions.terms import change_terms
from dispatcher.tuning.decisions.trade_off import by_day, judged, share_out, shares_by_agent, trade_off
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, decision

DAY_MS = 86_400_000
NOW = Terms()


def stored(position, *, day=0, **given):
    made = decision(BUSY_BUT_GOOD, IDLE, **given)
    return StoredDecision(
        request_id=RequestId("r"), position=position, recorded_ms=day * DAY_MS, decision=made
    )


ONE, NEXT_DAY = stored(0), stored(1, day=1)
UNLIKELY = stored(2, day=1, similarity=0.4)


def entry(one, verdict):
    return Entry(
        stored=one,
        language="en",
        environment="production",
        status=None,
        verdict=verdict,
        right_capability=None,
    )


def changed(*changes):
    return compare([NEXT_DAY, ONE, UNLIKELY], NOW, change_terms(NOW, changes))


def test_weights_share_what_similarity_leaves():
    assert share_out(0.5, 0.6) == Weights(similarity=0.5, success=0.3, headroom=0.2)


def test_each_proposal_says_what_the_chosen_agents_are_like():
    success, headroom = trade_off([ONE, UNLIKELY], NOW, [share_out(0.5, 1.0), share_out(0.5, 0.0)])

    assert (success.success, success.load, success.changed) == pytest.approx((1.0, 0.8, 0.0))
    assert (headroom.success, headroom.load, headroom.changed) == pytest.approx((0.7, 0.4, 1.0))


def test_a_proposal_under_which_nobody_is_chosen_is_left_out():
    assert not trade_off([], NOW, [share_out(0.5, 1.0)])


def test_changes_are_counted_by_day_in_order():
    assert by_day(changed("similarity_floor=0.5")) == {
        "1970-01-01": {Change.SAME: 1},
        "1970-01-02": {Change.SAME: 1, Change.REFUSED: 1},
    }


def test_what_people_said_is_laid_beside_what_changes():
    entries = [entry(ONE, "right"), entry(NEXT_DAY, None), entry(UNLIKELY, "wrong_capability")]

    assert judged(changed("similarity_floor=0.5"), entries) == {
        ("right", Change.SAME): 1,
        ("wrong_capability", Change.REFUSED): 1,
    }


def test_agents_are_listed_by_how_much_their_work_changes():
    found = shares_by_agent(changed("weights.headroom=0.5"))

    assert list(found.items()) == [("good", (3, 0)), ("idle", (0, 3))]
