import pytest

from dispatcher.identifiers import Capability
from dispatcher.records import replace
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

    assert [one.capability for one in found if one.teaches] == learnt
    assert all((one.text, one.language) == ("refund me", "en") for one in found)


def test_what_could_have_gone_another_way_is_for_people_the_closest_first():
    close = decision(BUSY_BUT_GOOD, NEXT._replace(cosine=0.59), text="low margin")
    near = decision(BUSY_BUT_GOOD, scope_score=0.22, text="near")
    far = decision(candidate(), outcome=Outcome.OUT_OF_SCOPE, reason=BELOW.value, scope_score=0, text="far")
    sure = decision(BUSY_BUT_GOOD, NEXT, text="sure")

    found = unsure(map(entry, (far, sure, near, close, close)), margin=0.05, height=0.03).texts

    assert [(one.text, one.reason) for one in found] == [
        ("low margin", "low_margin"),
        ("near", "near_the_floor"),
        ("far", "out_of_scope"),
    ]
    assert found[0].options == [("refund", 0.6), ("exchange", 0.59)]


def test_what_was_judged_or_named_is_not_asked_again():
    named = decision(BUSY_BUT_GOOD, scope_score=0.0, scope_floor=0.0)

    assert unsure([entry(REFUSED, verdict="right"), entry(named)], margin=1, height=1).texts == []


def test_a_follow_up_is_labelled_with_what_was_ranked():
    made = decision(
        BUSY_BUT_GOOD, text="and the blue one?", ranked_text="a coat and the blue one?", scope_score=0.2
    )

    (label,) = labels([entry(made, verdict="right")])
    found = unsure(
        [entry(made), entry(replace(made, ranked_text="a hat and the blue one?"))], margin=0, height=1
    ).texts

    assert label.text == "a coat and the blue one?"
    assert [one.text for one in found] == ["a coat and the blue one?", "a hat and the blue one?"]


def test_wrong_without_a_name_for_what_is_right_revokes_what_was_said_before():
    made = decision(BUSY_BUT_GOOD)

    found = list(labels([entry(made, verdict="right"), entry(made, verdict="wrong_capability")]))

    assert [(one.capability, one.teaches) for one in found] == [("refund", True), (None, False)]


def test_a_stranger_far_below_the_floor_is_no_close_call_whatever_its_margin():
    stranger = candidate("a", rejection=BELOW), NEXT._replace(cosine=0.6)
    far = decision(
        *stranger, outcome=Outcome.OUT_OF_SCOPE, reason=BELOW.value, scope_score=-0.3, text="far off"
    )
    near = decision(BUSY_BUT_GOOD, NEXT, scope_score=0.22, text="near")

    found = unsure(map(entry, (far, near)), margin=0.05, height=0.03).texts

    assert [one.text for one in found] == ["near", "far off"]


def test_texts_that_differ_in_case_or_spaces_only_are_asked_about_once():
    texts = ("Refund  me", "refund me", "REFUND ME ")

    found = unsure((entry(replace(REFUSED, text=text)) for text in texts), margin=0, height=0)

    assert [one.text for one in found.texts] == ["Refund  me"]


def test_the_closest_are_kept_and_the_rest_is_counted():
    heights = [0.5, 0.1, 0.4, 0.2, 0.3, 0.6, 0.05]
    rows = [entry(replace(REFUSED, text=f"at {one}", scope_score=0.2 - one)) for one in heights]

    found = unsure(rows, margin=0, height=0, most=2)

    assert [one.text for one in found.texts] == ["at 0.05", "at 0.1"]
    assert found.left_out == 5


def test_what_the_fallback_capability_got_is_offered_with_what_the_text_was_near():
    kept = replace(
        FALLBACK,
        winner=Capability("refund"),
        own_similarity=0.3,
        own_candidates=(candidate("a", rejection=BELOW, cosine=0.5), NEXT),
    )

    found = unsure([entry(kept), entry(replace(FALLBACK, text="older"))], margin=0, height=0).texts

    assert [one.options for one in found] == [[], [("refund", 0.5), ("exchange", 0.45)]]
    assert [one.margin for one in found] == [None, pytest.approx(0.05)]


def test_texts_are_read_as_they_come_and_those_that_are_not_close_are_forgotten():
    alive, most_alive = 0, 0

    class Text(str):
        __slots__ = ()

        def __init__(self, _text):
            nonlocal alive, most_alive
            alive += 1
            most_alive = max(most_alive, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    rows = (entry(replace(REFUSED, text=Text(f"text {at}"))) for at in range(500))

    found = unsure(rows, margin=0, height=0, most=5)

    assert (len(found.texts), found.left_out) == (5, 495)
    assert most_alive <= 2 * 5 + 4
