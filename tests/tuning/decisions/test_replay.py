"""A stored decision, decided again: with its own terms it comes out the same, with others as routing does."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher import records
from dispatcher.errors import ConfigurationError
from dispatcher.identifiers import Capability
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.curve import Curve
from dispatcher.routing.decision import Outcome, Rejection, Weights
from dispatcher.tuning.decisions.replay import Terms, as_recorded, contrast, decide_again, is_named
from tests.tuning.records import BUSY_BUT_GOOD, IDLE, candidate, decision


def test_the_same_terms_give_the_same_choice():
    made = decision(BUSY_BUT_GOOD, IDLE)

    again = decide_again(made, Terms())

    assert (again.agent_id, again.outcome) == ("good", Outcome.SELECTED)
    assert again.score == pytest.approx(0.5 * 0.8 + 0.3 * 1.0 + 0.2 * 0.2)


def test_more_weight_for_headroom_moves_the_request_to_the_idle_one():
    again = decide_again(
        decision(BUSY_BUT_GOOD, IDLE), Terms(weights=Weights(similarity=0.5, success=0.1, headroom=0.4))
    )

    assert (again.agent_id, again.success) == ("idle", 0.7)
    assert again.load == pytest.approx(0.4)


def test_another_capability_never_wins():
    stranger = candidate(
        "x", "exchange", Rejection.OTHER_CAPABILITY, similarity=1.0, success=1.0, headroom=1.0, score=1.0
    )

    again = decide_again(
        decision(BUSY_BUT_GOOD, stranger),
        Terms(weights=Weights(similarity=0, success=0, headroom=1), composite_floor=0),
    )

    assert again.agent_id == "good"


@pytest.mark.parametrize(
    "terms", [Terms(similarity_floor=0.81), Terms(scope_floor=0.41)], ids=["similarity", "scope"]
)
def test_a_higher_floor_refuses(terms):
    again = decide_again(decision(BUSY_BUT_GOOD), terms)

    assert (again.outcome, again.agent_id, again.reason) == (
        Outcome.OUT_OF_SCOPE,
        None,
        Rejection.BELOW_SCOPE_FLOOR.value,
    )


def test_a_lower_floor_accepts_and_takes_agents_to_be_able():
    below = Rejection.BELOW_SCOPE_FLOOR
    refused = decision(
        candidate("a", rejection=below, score=0.5),
        candidate("b", rejection=below, success=1.0, score=0.6),
        outcome=Outcome.OUT_OF_SCOPE,
        similarity=0.3,
        reason=below.value,
    )

    assert decide_again(refused, Terms()).outcome is Outcome.OUT_OF_SCOPE
    assert decide_again(refused, Terms(similarity_floor=0.25)).agent_id == "b"


@pytest.mark.parametrize(
    "reason",
    [Rejection.OFFLINE, Rejection.HOURS, Rejection.ENVIRONMENT, Rejection.DRAINING, Rejection.ALREADY_TRIED],
)
def test_who_could_not_take_it_then_does_not_take_it_now(reason):
    absent = candidate("absent", rejection=reason, success=1.0, headroom=1.0, score=0.9)

    assert decide_again(decision(BUSY_BUT_GOOD, absent), Terms()).agent_id == "good"
    alone = decision(absent, outcome=Outcome.UNAVAILABLE, reason=reason.value)
    assert decide_again(alone, Terms()).reason == reason.value


def test_what_was_not_granted_stays_so_whatever_the_floor():
    refused = decision(
        candidate(rejection=Rejection.NOT_GRANTED), outcome=Outcome.OUT_OF_SCOPE, reason="not_granted"
    )

    assert decide_again(refused, Terms(similarity_floor=0.0)) == as_recorded(refused)


def test_a_capability_that_its_caller_named_skips_the_floors():
    named = decision(BUSY_BUT_GOOD, scope_score=0.0, scope_floor=0.0, similarity=1.0)

    assert is_named(named)
    assert decide_again(named, Terms(similarity_floor=1.0, scope_floor=0.9)).agent_id == "good"


def test_a_capability_that_a_language_model_chose_skips_the_floors():
    chosen = decision(BUSY_BUT_GOOD, scope_score=0.1, scope_floor=0.2, similarity=0.3, advice=("choice",))
    split = decision(BUSY_BUT_GOOD, scope_score=0.1, scope_floor=0.2, similarity=0.3, advice=("split",))

    assert decide_again(chosen, Terms()).agent_id == "good"
    assert decide_again(split, Terms()).agent_id is None


def test_saturation_is_worked_out_anew():
    full = candidate("full", success=1.0, headroom=0.15, score=0.73)
    free = candidate("free", rejection=Rejection.OUTRANKED, success=0.6, headroom=0.5, score=0.68)

    assert decide_again(decision(full, free), Terms()).agent_id == "full"
    assert decide_again(decision(full, free), Terms(saturation=0.8)).agent_id == "free"


def test_of_a_saturated_group_the_least_bad_one_takes_it_without_a_floor():
    both = [
        candidate("a", success=0.1, headroom=0.0, score=0.2, similarity=0.36),
        candidate(
            "b", rejection=Rejection.OUTRANKED, success=0.0, headroom=0.05, score=0.19, similarity=0.36
        ),
    ]

    again = decide_again(decision(*both, similarity=0.36), Terms())

    assert (again.agent_id, again.reason) == ("a", "least_bad_of_saturated")


def test_below_the_composite_floor_nobody_takes_it():
    again = decide_again(decision(BUSY_BUT_GOOD), Terms(composite_floor=0.75))

    assert (again.outcome, again.reason) == (Outcome.UNAVAILABLE, Rejection.BELOW_COMPOSITE_FLOOR.value)


def test_who_was_passed_over_with_the_better_score_stays_behind_those_that_were_not():
    silent = candidate("silent", rejection=Rejection.OUTRANKED, success=1.0, headroom=0.9, score=0.88)

    assert decide_again(decision(BUSY_BUT_GOOD, silent), Terms()).agent_id == "good"


def _taken_by_a_busy_one(silent_success):
    """Its score is .345, below the floor; only a suspect had room."""
    silent = candidate(
        "silent",
        rejection=Rejection.OUTRANKED,
        similarity=0.4,
        success=silent_success,
        headroom=0.3,
        score=0.26 + 0.3 * silent_success,
    )
    busy = candidate("busy", similarity=0.4, success=0.45, headroom=0.05, score=0.345)
    return decision(busy, silent, similarity=0.4)


@pytest.mark.parametrize("silent_success", [0.0, 0.8], ids=["worse", "better"])
@pytest.mark.parametrize("saturation", [0.5, 0.9, 0.95])
def test_a_saturated_agent_that_was_chosen_beside_one_with_room_stays_before_it(silent_success, saturation):
    again = decide_again(_taken_by_a_busy_one(silent_success), Terms(saturation=saturation))

    assert (again.agent_id, again.reason) == ("busy", "least_bad_of_saturated")


def test_with_room_under_other_terms_it_has_to_reach_the_floor_as_any_other():
    made = _taken_by_a_busy_one(0.8)

    refused = decide_again(made, Terms(saturation=1.0))
    accepted = decide_again(made, Terms(saturation=1.0, composite_floor=0.34))

    assert (refused.agent_id, refused.reason) == ("silent", "highest_score")
    assert (accepted.agent_id, accepted.reason) == ("busy", "highest_score")


def test_the_room_of_who_was_passed_over_is_no_reason_to_leave_out_who_was_heard():
    silent = candidate("silent", rejection=Rejection.OUTRANKED, success=1.0, headroom=0.9, score=0.88)

    again = decide_again(decision(BUSY_BUT_GOOD, silent), Terms(saturation=0.7))

    assert (again.agent_id, again.reason) == ("good", "least_bad_of_saturated")


def test_who_was_passed_over_with_an_equal_score_and_a_smaller_id_stays_behind():
    silent = candidate("a", rejection=Rejection.OUTRANKED)

    assert decide_again(decision(candidate("b"), silent), Terms()).agent_id == "b"


def _labelled(intercept: int, floors: Mapping[Capability, float] | None = None) -> Calibration:
    return Calibration(
        encoder_id="e",
        registry_version=2,
        kind="labelled",
        floor=0.1,
        curve=Curve(slope=10, intercept=intercept),
        floors=floors or {},
    )


def test_another_calibration_brings_its_own_floor_and_curve():
    calibration = _labelled(-4)
    made = decision(BUSY_BUT_GOOD, IDLE)

    again = decide_again(made, Terms(calibration=calibration))

    assert contrast(made) == pytest.approx(0.2)
    assert again.score == pytest.approx(0.5 * 0.5 + 0.3 + 0.04)
    assert (
        decide_again(made, Terms(calibration=replace(calibration, floor=0.5))).outcome is Outcome.OUT_OF_SCOPE
    )


@pytest.mark.parametrize(("advice", "similarity"), [((), 0.5), (("choice",), 0.5 / (0.5 + 0.5 * 7.389056))])
def test_the_winners_agents_are_on_the_scale_of_the_score_that_the_text_was_accepted_by(advice, similarity):
    calibration = _labelled(-4)
    other = candidate("b", "exchange", Rejection.OTHER_CAPABILITY, cosine=0.8)
    made = decision(BUSY_BUT_GOOD, other, contrast=0.4, advice=advice)

    again = decide_again(made, Terms(calibration=calibration))

    assert again.score == pytest.approx(0.5 * similarity + 0.3 + 0.04)


def test_a_capabilitys_own_floor_counts_for_what_it_won():
    calibration = _labelled(-2, floors={Capability("refund"): 0.5})
    terms = Terms(calibration=calibration)

    strict, common = (
        decide_again(decision(BUSY_BUT_GOOD, capability=name), terms) for name in ("refund", "exchange")
    )

    assert strict.outcome is Outcome.OUT_OF_SCOPE
    assert common.outcome is Outcome.SELECTED


def test_a_calibration_of_another_encoder_is_refused():
    calibration = Calibration(encoder_id="another", registry_version=2, kind="self", floor=0.1, curve=None)

    with pytest.raises(ConfigurationError, match="another"):
        decide_again(decision(BUSY_BUT_GOOD), Terms(calibration=calibration))


@given(
    factors=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6),
    weights=st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(1, 10)),
)
def test_the_best_of_the_free_ones_wins(factors, weights):
    shares = [one / sum(weights) for one in weights]
    made = Weights(similarity=shares[0], success=shares[1], headroom=shares[2])
    rows = [
        candidate(f"a{at}", rejection=Rejection.BELOW_SCOPE_FLOOR, success=success, headroom=free, score=0)
        for at, (success, free) in enumerate(factors)
    ]
    terms = Terms(weights=made, composite_floor=0.0)

    again = decide_again(decision(*rows, outcome=Outcome.OUT_OF_SCOPE), terms)

    free = [row for row in rows if 1 - row.headroom < 0.9 - 1e-9] or rows
    best = max(
        shares[0] * row.similarity + shares[1] * row.success + shares[2] * row.headroom for row in free
    )
    assert again.score == pytest.approx(min(best, 1.0))


OWN_FLOOR = _labelled(-2, floors={Capability("refund"): 0.5})


def test_a_near_capability_that_was_chosen_is_under_the_winners_floor():
    near = decision(candidate("near", "exchange"), capability="exchange", winner=Capability("refund"))

    again = decide_again(near, Terms(calibration=OWN_FLOOR))

    assert (again.outcome, again.capability) == (Outcome.OUT_OF_SCOPE, "refund")
    unstored = records.replace(near, winner=None)
    assert decide_again(unstored, Terms(calibration=OWN_FLOOR)).agent_id == "near"


def test_a_near_capability_without_a_grant_does_not_freeze_the_decision():
    ungranted = candidate("other", "exchange", Rejection.NOT_GRANTED, success=1.0, headroom=1.0)
    made = decision(BUSY_BUT_GOOD, IDLE, ungranted)

    again = decide_again(made, Terms(weights=Weights(similarity=0.5, success=0.1, headroom=0.4)))

    assert again.agent_id == "idle"


def test_the_contrast_is_the_stored_one_where_the_best_candidate_was_cut():
    assert contrast(decision(BUSY_BUT_GOOD, contrast=0.35)) == 0.35
    assert contrast(decision(BUSY_BUT_GOOD, contrast=0.0)) == 0.0
    assert contrast(decision(BUSY_BUT_GOOD)) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": Outcome.HANDED_OFF, "reason": "below_semantic_bar"},
        {"outcome": Outcome.UNAVAILABLE, "reason": "offline", "refused_for": "below_scope_floor"},
        {"outcome": Outcome.CLARIFY, "reason": "ambiguous"},
        {"reason": "fallback", "refused_for": "below_scope_floor", "own_similarity": 0.3},
        {
            "reason": "fallback",
            "refused_for": "not_granted",
            "own_similarity": 0.3,
            "own_candidates": (candidate("b", rejection=Rejection.NOT_GRANTED),),
        },
    ],
    ids=str,
)
def test_what_no_term_decided_stays(given):
    made = decision(candidate("a", rejection=Rejection.BELOW_SCOPE_FLOOR), **given)

    assert decide_again(made, Terms(similarity_floor=0.0, scope_floor=0.0)) == as_recorded(made)


def test_what_the_fallback_capability_got_is_decided_on_the_texts_own_candidates():
    own = candidate("own", rejection=Rejection.BELOW_SCOPE_FLOOR, similarity=0.3, success=1.0)
    made = decision(
        candidate("net", "ask.anything", similarity=1.0),
        reason="fallback",
        capability="ask.anything",
        similarity=1.0,
        winner="refund",
        refused_for=Rejection.BELOW_SCOPE_FLOOR.value,
        own_similarity=0.3,
        own_candidates=(own,),
    )

    accepted = decide_again(made, Terms(similarity_floor=0.25, composite_floor=0.25))

    assert (accepted.agent_id, accepted.capability, accepted.is_refused) == ("own", "refund", False)
    assert decide_again(made, Terms()) == as_recorded(made)
    assert as_recorded(made).is_refused
