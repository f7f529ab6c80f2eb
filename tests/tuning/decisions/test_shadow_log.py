"""How often a calibration in shadow would have decided otherwise."""

import pytest

from dispatcher.dispatch.fallback import BELOW_BAR, REASON
from dispatcher.identifiers import RequestId
from dispatcher.records import replace
from dispatcher.routing.decision import Outcome, Rejection, ShadowDecision
from dispatcher.tuning.decisions.replay import StoredDecision
from dispatcher.tuning.decisions.shadow_log import compare_shadows
from tests.tuning.records import BUSY_BUT_GOOD, candidate, decision

BELOW = Rejection.BELOW_SCOPE_FLOOR
MOST = 100


def shadow(outcome: Outcome, number: int = 2, similarity: float = 0.9) -> ShadowDecision:
    return ShadowDecision(number=number, outcome=outcome, similarity=similarity, scope_floor=0.3)


def stored(made, at: int) -> StoredDecision:
    return StoredDecision(request_id=RequestId(f"r{at}"), position=0, recorded_ms=at, decision=made)


def accepted(of_shadow: ShadowDecision | None, **given):
    return decision(BUSY_BUT_GOOD, shadow=of_shadow, **given)


def refused(of_shadow: ShadowDecision, outcome=Outcome.OUT_OF_SCOPE, reason=BELOW.value):
    return decision(
        candidate(rejection=BELOW), outcome=outcome, reason=reason, scope_score=0.1, shadow=of_shadow
    )


def test_each_number_is_compared_with_what_was_in_force():
    rows = [
        stored(accepted(None), 1),
        stored(accepted(shadow(Outcome.SELECTED)), 5),
        stored(accepted(shadow(Outcome.OUT_OF_SCOPE), text="strict"), 3),
        stored(refused(shadow(Outcome.SELECTED)), 4),
        stored(refused(shadow(Outcome.OUT_OF_SCOPE)), 6),
        stored(accepted(shadow(Outcome.OUT_OF_SCOPE, number=9)), 7),
    ]

    second, ninth = compare_shadows(rows, MOST)

    assert (second.number, second.decisions, second.since_ms, second.until_ms) == (2, 4, 3, 6)
    assert [(one.request_id, one.text) for one in second.refused] == [("r3", "strict")]
    assert [one.request_id for one in second.accepted] == ["r4"]
    assert second.similarity == pytest.approx(0.1)
    assert (ninth.number, ninth.decisions, len(ninth.refused)) == (9, 1, 1)
    assert second.refused[0].shadow.scope_floor == 0.3


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.HANDED_OFF, BELOW_BAR),
        (Outcome.HANDED_OFF, BELOW.value),
        (Outcome.SELECTED, REASON),
        (Outcome.UNAVAILABLE, "offline"),
    ],
)
def test_what_was_below_the_floor_was_refused_whoever_got_it(outcome, reason):
    (one,) = compare_shadows([stored(refused(shadow(Outcome.SELECTED), outcome, reason), 1)], MOST)

    assert (len(one.refused), len(one.accepted)) == (0, 1)


def test_a_refusal_for_a_missing_grant_is_no_difference():
    made = accepted(
        shadow(Outcome.OUT_OF_SCOPE), reason=Rejection.NOT_GRANTED.value, outcome=Outcome.OUT_OF_SCOPE
    )

    (one,) = compare_shadows([stored(made, 1)], MOST)

    assert (one.refused, one.accepted) == ([], [])


def test_without_any_there_is_nothing_to_compare():
    assert compare_shadows([stored(accepted(None), 1)], MOST) == []


def test_what_the_fallback_capability_got_says_nothing_of_similarity():
    got = replace(
        refused(shadow(Outcome.OUT_OF_SCOPE, similarity=0.05), Outcome.SELECTED, REASON),
        similarity=1.0,
        refused_for=BELOW.value,
    )
    down = replace(got, outcome=Outcome.UNAVAILABLE, reason="offline", scope_score=0.4)

    (alone,) = compare_shadows([stored(got, 1), stored(down, 2)], MOST)
    (one,) = compare_shadows(
        [stored(got, 1), stored(down, 2), stored(accepted(shadow(Outcome.SELECTED)), 3)], MOST
    )

    assert (alone.similarity, alone.decisions) == (0.0, 2)
    assert one.similarity == pytest.approx(0.1)
    assert (one.refused, one.accepted) == ([], [])


def test_what_a_bar_above_the_floors_refused_is_no_matter_of_calibration():
    overruled = replace(refused(shadow(Outcome.SELECTED), Outcome.HANDED_OFF, BELOW_BAR), scope_score=0.2)

    assert compare_shadows([stored(overruled, 1)], MOST) == []


def test_a_missing_grant_is_no_difference_whoever_got_it():
    missing = Rejection.NOT_GRANTED.value
    handed = accepted(shadow(Outcome.OUT_OF_SCOPE), reason=missing)
    handed = replace(handed, outcome=Outcome.HANDED_OFF)
    caught = accepted(shadow(Outcome.OUT_OF_SCOPE), reason=REASON, refused_for=missing)

    (one,) = compare_shadows([stored(handed, 1), stored(caught, 2)], MOST)

    assert (one.refused, one.accepted) == ([], [])


def test_only_so_many_rows_of_either_kind_are_kept_and_all_are_counted():
    rows = [stored(accepted(shadow(Outcome.OUT_OF_SCOPE)), at) for at in range(3)]
    rows += [stored(refused(shadow(Outcome.SELECTED)), at) for at in range(3, 8)]

    (one,) = compare_shadows(iter(rows), 2)

    assert ([row.request_id for row in one.refused], one.refused_count) == (["r0", "r1"], 3)
    assert ([row.request_id for row in one.accepted], one.accepted_count) == (["r3", "r4"], 5)
