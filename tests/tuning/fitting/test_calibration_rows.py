"""Which judged texts a calibration may be fitted on."""

import json

import pytest

from dispatcher.errors import RequestError
from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.decisions.labels import Label
from dispatcher.tuning.fitting.calibration_rows import (
    Judgements,
    Scored,
    choose_rows,
    of_labels,
    read_labelled,
    widened,
)

ORDER, REFUND = Capability("order.query"), Capability("card-arrival")
REGISTERED = frozenset({ORDER, REFUND})


def row(text: str, *wanted: str, has_parts: bool = False) -> RequestRow:
    return RequestRow(
        text=text, language="en", wanted=frozenset(map(Capability, wanted)), has_parts=has_parts
    )


def said(*rows: RequestRow, **left_out: int) -> Judgements:
    return Judgements(rows=rows, left_out=left_out)


def test_names_are_registered_ones_or_become_what_a_data_sets_would():
    lines = [
        {"text": "where is it", "agents": ["order.query"]},
        {"text": "card?", "agents": [" Card Arrival "], "lang": "en"},
        {"text": "both", "agents": ["order.query", "Card Arrival"]},
        {"text": "hello", "agents": []},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n"

    found = read_labelled(text, "rows.jsonl", REGISTERED)

    assert [one.wanted for one in found.rows] == [{ORDER}, {REFUND}, {ORDER, REFUND}, frozenset()]


@pytest.mark.parametrize(
    "line", ["{", "3", '{"text": "x"}', '{"text": "x", "agents": 3}', '{"text": "x", "agents": [3]}']
)
def test_a_line_that_is_none_is_refused_by_its_place(line):
    with pytest.raises(RequestError, match=r"rows\.jsonl, line 2"):
        read_labelled('{"text": "x", "agents": []}\n' + line, "rows.jsonl", REGISTERED)


def test_feedback_becomes_rows():
    labels = [
        Label(text=" where is it ", language="en", capability=ORDER),
        Label(text="hello", language="zh", capability=None),
    ]

    assert of_labels(labels) == Judgements(
        rows=[row("where is it", ORDER), RequestRow(text="hello", language="zh", wanted=frozenset())],
        left_out={},
    )


def test_what_was_revoked_teaches_nothing_and_what_is_said_later_counts():
    def label(text, capability=None, *, teaches=True):
        return Label(text=text, language="en", capability=capability, teaches=teaches)

    labels = [
        label("revoked", ORDER),
        label("Revoked ", teaches=False),
        label("right after all", teaches=False),
        label("right after all", REFUND),
        label("order?", REFUND),
        label("order?", ORDER),
    ]

    assert of_labels(labels) == Judgements(
        rows=[row("right after all", REFUND), row("order?", ORDER)],
        left_out={"same text again": 3, "wrong, and nobody said what is right": 1},
    )


def test_lines_that_wait_for_their_label_are_counted_and_the_others_keep_their_numbers():
    text = '{"text": "x", "agents": null}\n{"text": "y", "agents": []}\n'

    assert read_labelled(text, "rows.jsonl", REGISTERED) == Judgements(
        rows=(RequestRow(text="y", language="und", wanted=frozenset()),), left_out={"not labelled yet": 1}
    )
    with pytest.raises(RequestError, match=r"rows\.jsonl, line 3"):
        read_labelled(text + "{", "rows.jsonl", REGISTERED)


def test_what_was_said_last_counts_even_where_it_can_not_be_fitted_on():
    chosen = choose_rows(said(row("where is it", ORDER), row("where is it", "gone.thing")), REGISTERED, ())

    assert chosen.rows == ()
    assert chosen.left_out == {"same text again": 1, "capability is not registered": 1}


def test_twins_of_what_is_wanted_are_wanted():
    twins = frozenset({(ORDER, Capability("order.status")), (Capability("a"), Capability("b"))})

    assert widened(frozenset({ORDER}), twins) == {ORDER, "order.status"}
    assert widened(frozenset({REFUND}), twins) == {REFUND}
    assert widened(frozenset(), twins) == frozenset()


def test_what_shows_nothing_is_left_out_and_counted():
    rows = [
        row("where is it", ORDER),
        row("hello"),
        row("gone", "gone.thing"),
        row("either", ORDER, "gone.thing"),
        row("an example", ORDER),
        row("two things", ORDER, has_parts=True),
    ]

    chosen = choose_rows(Judgements(rows=rows, left_out={"not labelled yet": 4}), REGISTERED, {"an example"})

    assert [one.text for one in chosen.rows] == ["where is it", "hello"]
    assert chosen.left_out == {
        "capability is not registered": 2,
        "message of several wishes": 1,
        "not labelled yet": 4,
        "registered as an example": 1,
    }


def test_each_text_counts_once_as_it_was_judged_last():
    chosen = choose_rows(said(row("where is it"), row("b"), row("where is it", ORDER)), REGISTERED, ())

    assert chosen.rows == (row("b"), row("where is it", ORDER))
    assert chosen.left_out == {"same text again": 1}


@pytest.mark.parametrize(
    ("wanted", "winner", "is_right"),
    [((ORDER,), ORDER, True), ((ORDER, REFUND), REFUND, True), ((ORDER,), REFUND, False), ((), None, False)],
)
def test_any_of_those_asked_for_is_right(wanted, winner, is_right):
    assert Scored(wanted=frozenset(wanted), winner=winner, score=0.0).is_right is is_right


def test_texts_that_differ_in_case_spaces_or_form_only_are_the_same():
    rows = [row("Where  is it", ORDER), row("where is IT"), row("Cafe\u0301 open"), row("AN example", ORDER)]

    chosen = choose_rows(said(*rows), REGISTERED, {" an Example", "CAFÉ open"})

    assert chosen.rows == (row("where is IT"),)
    assert chosen.left_out == {"registered as an example": 2, "same text again": 1}
