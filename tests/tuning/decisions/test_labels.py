from dataclasses import replace

import pytest

from dispatcher.routing.decision import Outcome, Rejection
from dispatcher.tuning.decisions.labels import labels, unsure
from tests.tuning.records import BUSY_BUT_GOOD, candidate, decision, entry

BELOW = Rejection.BELOW_SCOPE_FLOOR
FALLBACK = decision(
    candidate("net", "ask.anything"),
    reason="fallback",
    capability="ask.anything",
    similarity=1.0,
    scope_score=0.15,
    refused_for=BELOW.value,
)
BAR = decision(candidate("a", rejection=BELOW), outcome=Outcome.HANDED_OFF, reason="below_semantic_bar")
NEXT = candidate("x", "exchange", Rejection.OTHER_CAPABILITY, cosine=0.45)
REFUSED = decision(
    candidate("a", rejection=BELOW), outcome=Outcome.OUT_OF_SCOPE, reason=BELOW.value, scope_score=0.15
)


@pytest.mark.parametrize(
    ("made", "verdict", "right", "learnt"),
    [
        (decision(BUSY_BUT_GOOD), "right", None, ["refund"]),
        (decision(BUSY_BUT_GOOD), "wrong_agent", None, ["refund"]),
        (decision(BUSY_BUT_GOOD), "wrong_capability", "exchange", ["exchange"]),
        (decision(BUSY_BUT_GOOD), "wrong_capability", None, []),
        (decision(BUSY_BUT_GOOD), "out_of_scope", None, [None]),
        (decision(BUSY_BUT_GOOD), None, None, []),
        (REFUSED, "right", None, [None]),
        (REFUSED, "wrong_capability", "exchange", ["exchange"]),
        (decision(BUSY_BUT_GOOD, scope_score=0.0, scope_floor=0.0), "right", None, []),
        (FALLBACK, "right", None, [None]),
        (FALLBACK, "wrong_agent", None, []),
        (FALLBACK, "wrong_capability", "refund", ["refund"]),
        (replace(FALLBACK, refused_for="not_granted"), "right", None, []),
        (replace(FALLBACK, refused_for=None), "right", None, [None]),
        (replace(FALLBACK, refused_for=None, scope_score=0.4), "right", None, []),
        (replace(REFUSED, reason="not_granted", scope_score=0.4), "right", None, []),
        (BAR, "right", None, []),
        (replace(BAR, scope_score=0.1), "right", None, [None]),
    ],
)
def test_what_a_judgement_teaches(made, verdict, right, learnt):
    found = list(labels([entry(made, verdict=verdict, right_capability=right)]))

    assert [one.capability for one in found] == learnt
    assert all((one.text, one.language) == ("refund me", "en") for one in found)


def test_what_could_have_gone_another_way_is_for_people_the_closest_first():
    close = decision(BUSY_BUT_GOOD, NEXT._replace(cosine=0.59), text="low margin")
    near = decision(BUSY_BUT_GOOD, scope_score=0.22, text="near")
    far = decision(candidate(), outcome=Outcome.OUT_OF_SCOPE, reason=BELOW.value, scope_score=0, text="far")
    sure = decision(BUSY_BUT_GOOD, NEXT, text="sure")

    found = unsure(map(entry, (far, sure, near, close, close)), margin=0.05, height=0.03)

    assert [(one.entry.decision.text, one.reason) for one in found] == [
        ("low margin", "low_margin"),
        ("near", "near_the_floor"),
        ("far", "out_of_scope"),
    ]
    assert found[0].options == [("refund", 0.6), ("exchange", 0.59)]


def test_what_was_judged_or_named_is_not_asked_again():
    named = decision(BUSY_BUT_GOOD, scope_score=0.0, scope_floor=0.0)

    assert unsure([entry(REFUSED, verdict="right"), entry(named)], margin=1, height=1) == []


def test_a_follow_up_is_labelled_with_what_was_ranked():
    made = decision(
        BUSY_BUT_GOOD, text="and the blue one?", ranked_text="a coat and the blue one?", scope_score=0.2
    )

    (label,) = labels([entry(made, verdict="right")])
    found = unsure(
        [entry(made), entry(replace(made, ranked_text="a hat and the blue one?"))], margin=0, height=1
    )

    assert label.text == "a coat and the blue one?"
    assert [one.entry.text for one in found] == ["a coat and the blue one?", "a hat and the blue one?"]
