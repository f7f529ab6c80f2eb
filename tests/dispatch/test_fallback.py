"""What a refused decision becomes."""

import pytest

from dispatcher.dispatch.fallback import (
    BELOW_BAR,
    REASON,
    handed_over,
    instead,
    refused_by_floors,
    went_to_fallback,
)
from dispatcher.identifiers import AgentId, Capability
from dispatcher.records import replace
from dispatcher.routing.decision import Candidate, Outcome, Rejection, ShadowDecision
from tests.dispatch.builders import decision

REFUSED = replace(
    decision(None, Outcome.OUT_OF_SCOPE), reason="below_scope_floor", scope_score=0.1, advice=("split",)
)
SAFETY_NET = Capability("ask.anything")


def test_what_a_person_does_keeps_the_reason_why_nobody_else_can() -> None:
    over = handed_over(REFUSED)

    assert over == replace(REFUSED, outcome=Outcome.HANDED_OFF)


@pytest.mark.parametrize(
    ("reason", "told"), [("below_scope_floor", BELOW_BAR), ("not_granted", "not_granted")]
)
def test_a_description_that_is_not_clear_enough_is_what_was_decided_on(reason: str, told: str) -> None:
    over = handed_over(replace(REFUSED, reason=reason), "somebody who sings")

    assert (over.outcome, over.reason, over.text) == (Outcome.HANDED_OFF, told, "somebody who sings")


def test_the_fallback_capability_gets_it_with_the_texts_own_scope() -> None:
    found = replace(decision("net"), capability=SAFETY_NET, scope_score=0.0, scope_floor=0.0)

    made = instead(REFUSED, found)

    assert (made.agent_id, made.capability, made.reason) == ("net", SAFETY_NET, REASON)
    assert (made.scope_score, made.scope_floor, made.advice) == (0.1, 0.2, ("split",))


def test_where_its_agents_are_down_that_is_told() -> None:
    made = instead(REFUSED, replace(decision(None, Outcome.UNAVAILABLE), reason="offline"))

    assert (made.outcome, made.reason) == (Outcome.UNAVAILABLE, "offline")


def test_without_a_grant_for_it_the_text_stays_out_of_scope() -> None:
    assert instead(REFUSED, decision(None, Outcome.OUT_OF_SCOPE)) is REFUSED


def test_what_another_calibration_would_have_said_of_the_text_goes_along():
    shadow = ShadowDecision(number=2, outcome=Outcome.SELECTED, similarity=0.9, scope_floor=0.1)

    made = instead(replace(REFUSED, shadow=shadow), decision(None, Outcome.UNAVAILABLE))

    assert made.shadow == shadow


def test_what_was_ranked_and_why_it_was_refused_goes_along():
    asked = replace(REFUSED, winner=Capability("track"), contrast=0.3, ranked_text="earlier and now")

    made = instead(asked, replace(decision("net"), capability=SAFETY_NET))

    assert (made.winner, made.contrast, made.ranked_text) == ("track", 0.3, "earlier and now")
    assert made.refused_for == "below_scope_floor"
    assert went_to_fallback(made)
    assert not went_to_fallback(asked)


def test_what_the_text_itself_was_near_goes_along_beside_who_got_it():
    near = Candidate(
        AgentId("far"), Capability("track"), 0.4, 0.3, 0.8, 1.0, 0.5, Rejection.BELOW_SCOPE_FLOOR
    )
    asked = replace(REFUSED, similarity=0.3, candidates=(near,))
    net = replace(decision("net"), capability=SAFETY_NET, similarity=1.0)

    made = instead(asked, net)

    assert (made.similarity, made.candidates) == (1.0, net.candidates)
    assert (made.own_similarity, made.own_candidates) == (0.3, (near,))


@pytest.mark.parametrize(
    ("outcome", "reason", "given", "is_refused"),
    [
        (Outcome.OUT_OF_SCOPE, "below_scope_floor", {}, True),
        (Outcome.HANDED_OFF, "below_scope_floor", {"scope_score": 0.9}, True),
        (Outcome.OUT_OF_SCOPE, "not_granted", {}, False),
        (Outcome.HANDED_OFF, BELOW_BAR, {}, True),
        (Outcome.HANDED_OFF, BELOW_BAR, {"scope_score": 0.2}, False),
        (Outcome.SELECTED, "highest_score", {}, False),
        (Outcome.SELECTED, REASON, {"refused_for": "below_scope_floor", "scope_score": 0.9}, True),
        (Outcome.UNAVAILABLE, "offline", {"refused_for": "below_scope_floor", "scope_score": 0.9}, True),
        (Outcome.SELECTED, REASON, {"refused_for": "not_granted"}, False),
        (Outcome.SELECTED, REASON, {}, True),
        (Outcome.SELECTED, REASON, {"scope_score": 0.2}, False),
        (Outcome.UNAVAILABLE, "offline", {}, True),
        (Outcome.UNAVAILABLE, "offline", {"scope_score": 0.2}, False),
        (Outcome.UNAVAILABLE, "offline", {"advice": ("choice",)}, False),
    ],
)
def test_the_floors_refused_it_whoever_got_it(outcome, reason, given, is_refused):
    known = {"reason": reason, "scope_score": 0.1, "scope_floor": 0.2, "advice": ()}

    assert refused_by_floors(replace(decision(None, outcome), **(known | given))) is is_refused
