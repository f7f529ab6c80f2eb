"""Which figures follow from rankings, and why one is left out."""

from dataclasses import replace

import numpy as np
import pytest

from dispatcher.identifiers import Capability
from dispatcher.tuning.basis.rows import RequestRow
from dispatcher.tuning.evaluation.routed import (
    NO_MESSAGES,
    NO_OUTSIDE,
    NO_REQUESTS,
    Figures,
    RoutedRow,
    confusions,
    grouped,
    message_figures,
    missing,
    ranked_figures,
    served,
)


def row(*wanted, language="en"):
    return RequestRow(text="x", language=language, wanted=frozenset(map(Capability, wanted)))


def routed_row(wanted, best, *, score=0.5, accepted=True, similarity=0.5, language="en"):
    return RoutedRow(
        row=row(*wanted, language=language),
        best=tuple(map(Capability, best)),
        similarity=similarity,
        scope_score=score,
        in_scope=accepted,
    )


ROUTED = [
    routed_row("a", "abc", score=0.9, similarity=1.0),
    routed_row("ab", "bcd", score=0.8, similarity=1.0, language="zh"),
    routed_row("a", "bca", score=0.4, similarity=0.0, accepted=False),
    routed_row("a", "bcd", score=0.3, similarity=0.0),
    routed_row("", "abc", score=0.35, similarity=0.0),
    routed_row("", "abc", score=0.1, similarity=0.0, accepted=False),
]


def measured(routed):
    return ranked_figures(routed, np.random.default_rng(1))


def test_rankings_give_accuracy_refusal_and_calibration():
    figures = measured(ROUTED)

    values = {name: figure.value for name, figure in figures.found.items()}
    assert values == {
        "top1": 0.5,
        "top1_or_twin": 0.5,
        "top3": 0.75,
        "in_scope_lost": 0.25,
        "oos_rejected": 0.5,
        "oos_auroc": pytest.approx(7 / 8),
        "ece": 0.0,
        "ece_in_scope": 0.0,
    }
    assert figures.left_out == {}
    assert (figures.found["top1"].of, figures.found["oos_rejected"].of, figures.found["ece"].of) == (4, 2, 6)


def test_a_sure_answer_to_what_is_out_of_scope_is_a_calibration_error_of_all_rows_only():
    sure = [routed_row("a", "a", similarity=1.0), routed_row("", "a", similarity=1.0)]

    figures = measured(sure).found

    assert (figures["ece"].value, figures["ece_in_scope"].value) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("routed", "reason", "left_out"),
    [
        (ROUTED[:4], NO_OUTSIDE, {"oos_auroc", "oos_rejected"}),
        (
            ROUTED[4:],
            NO_REQUESTS,
            {"top1", "top1_or_twin", "top3", "in_scope_lost", "oos_auroc", "ece", "ece_in_scope"},
        ),
    ],
)
def test_what_the_data_cannot_give_is_left_out_with_the_reason(routed, reason, left_out):
    figures = measured(routed)

    assert figures.left_out == dict.fromkeys(left_out, reason)
    assert not figures.found.keys() & left_out


def test_a_twin_of_the_winner_is_right_only_in_the_figure_that_says_so():
    won_by_twin = replace(routed_row("a", "b"), twins=frozenset({Capability("b"), Capability("a")}))

    figures = measured([won_by_twin, routed_row("c", "b")]).found

    assert (figures["top1"].value, figures["top1_or_twin"].value) == (0, 0.5)


def test_three_exact_messages_leave_room_for_others():
    rows, found = [row("a")] * 3, [frozenset({Capability("a")})] * 3

    figure = message_figures(rows, found, np.random.default_rng(1)).found["multi_f1"]

    assert (figure.low, figure.high) == pytest.approx((0.438, 1.0), abs=1e-3)


def test_only_what_somebody_gets_is_served():
    assert served([Capability("a"), None, Capability("a")]) == {"a"}


def test_messages_count_as_exact_where_neither_more_nor_less_was_found():
    rows = [row("a", "b"), row("a", "b"), row("a")]
    found = [frozenset("ab"), frozenset("a"), frozenset("ab")]

    figures = message_figures(
        rows, [frozenset(map(Capability, one)) for one in found], np.random.default_rng(1)
    )

    assert figures.found["multi_exact"].value == pytest.approx(1 / 3)
    assert figures.found["multi_f1"].value == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)


def test_without_messages_both_figures_are_left_out():
    figures = message_figures([], [], np.random.default_rng(1))

    assert figures == missing(("multi_exact", "multi_f1"), NO_MESSAGES)
    assert (figures | Figures()) == figures


def test_groups_are_by_language_and_by_each_wanted_capability():
    groups = grouped(ROUTED)

    assert groups["by_language"]["zh"] == {
        "of": 1,
        "top1": 1.0,
        "in_scope_lost": 0.0,
        "intervals": {"top1": [0.2065, 1.0], "in_scope_lost": [0.0, 0.7935]},
    }
    assert groups["by_language"]["en"]["of"] == 3
    assert {name: one["of"] for name, one in groups["by_agent"].items()} == {"a": 4, "b": 1}


def test_confusions_name_what_won_most_frequent_first():
    nothing_registered = routed_row("a", "")
    two = routed_row("ab", "c")

    listed = confusions([*ROUTED, two, nothing_registered])

    assert listed == [
        {"wanted": "a", "won": "b", "count": 2},
        {"wanted": "a + b", "won": "c", "count": 1},
    ]
