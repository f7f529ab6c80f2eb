"""Rows as tables for people."""

from dispatcher.tuning.analysis.frame import table
from dispatcher.tuning.basis.metrics import share


def test_a_figure_is_shown_with_its_interval_and_nothing_as_a_dash():
    shown = table([{"floor": 0.35, "precision": share(1, 2), "best": None, "count": 3}])

    assert shown.index.tolist() == ["0.35"]
    assert shown["precision"].tolist() == ["0.50 (0.09 to 0.91)"]
    assert shown["best"].tolist() == ["-"]
    assert shown["count"].tolist() == [3]


def test_no_rows_are_an_empty_table():
    assert table([]).empty
