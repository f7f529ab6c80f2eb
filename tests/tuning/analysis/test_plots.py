"""Plots show what they are given, with names on their axes; notebooks' outputs are looked at by people."""

import numpy as np
import pytest

from dispatcher.tuning.analysis.plots import (
    Axis,
    bars,
    boxes,
    heat_map,
    histograms,
    lines,
    path,
    points,
    reliability_plot,
    score_bars,
    stacked,
)

X, Y = (
    Axis(name="load (share)", limits=(0, 1), marks={"saturated": 0.9}),
    Axis(name="requests", limits=(0, 5)),
)
PLAIN = Axis(name="load (share)")
CHARTS = {
    "histograms": lambda: histograms("t", {"a": [0.1, 0.2], "b": [0.5]}, X, Y),
    "histograms without limits": lambda: histograms("t", {"a": [0.1, 0.2]}, PLAIN, Y),
    "lines": lambda: lines("t", [0, 1], {"a": [1, 2], "b": [np.nan, 1]}, X, Y),
    "points": lambda: points("t", {"a": [(0.0, 1.0, 0.5, 1.5)]}, X, Y),
    "path": lambda: path("t", [(0.1, 1.0, "one"), (0.2, 2.0, "two")], X, Y),
    "reliability": lambda: reliability_plot("t", [(0.5, 0.4, 0.3, 0.5)], X, Axis(name="right")),
    "bars": lambda: bars("t", ["a", "b"], {"one": [1, 2], "two": [2, 1]}, X),
    "boxes": lambda: boxes("t", {"a": [0.1, 0.2, 0.3]}, X),
    "stacked": lambda: stacked("t", ["a", "b"], {"one": [1, 2], "two": [2, 1]}, Y),
    "score bars": lambda: score_bars(
        "t",
        [
            {"agent_id": "a", "capability": "c", "share": 0.5, "left out because": "chosen"},
            {"agent_id": "b", "capability": "c", "share": 0.2, "left out because": "outranked"},
        ],
        ["share"],
        X,
    ),
    "heat map": lambda: heat_map("t", [[0, 1], [2, 0]], ["a", "b"], ["c", "d"], "texts"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_a_png_and_the_same_one_every_time(name):
    chart = CHARTS[name]()

    assert chart._repr_png_() == CHARTS[name]().png()
    assert chart.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(CHARTS.keys() - {"heat map", "stacked"}))
def test_the_axis_across_is_named(name):
    assert CHARTS[name]().figure.axes[-1].get_xlabel() in {X.name, PLAIN.name}


def test_series_are_told_apart_by_colour_and_by_line():
    drawn = CHARTS["lines"]().figure.axes[0].lines[:2]

    assert len({line.get_color() for line in drawn}) == 2
    assert len({line.get_linestyle() for line in drawn}) == 2


def test_marks_are_named_in_the_legend():
    _, names = CHARTS["lines"]().figure.axes[0].get_legend_handles_labels()

    assert names == ["a", "b", "saturated"]


def test_columns_stand_on_one_another():
    axes = CHARTS["stacked"]().figure.axes[0]
    to_data = axes.transData.inverted()
    edges = [to_data.transform(column.get_window_extent())[:, 1] for column in axes.patches]

    assert np.round(edges, 6).tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]


def test_zeros_of_a_heat_map_stay_empty():
    shown = [text.get_text() for text in CHARTS["heat map"]().figure.axes[0].texts]

    assert shown == ["1", "2"]


def test_nobody_gets_a_star_where_nobody_was_chosen():
    refused = {"agent_id": "a", "capability": "c", "share": 0.5, "left out because": "below_scope_floor"}

    def legend(*rows):
        return score_bars("t", rows, ["share"], X).figure.axes[0].get_legend_handles_labels()[1]

    assert "chosen" not in legend(refused)
    assert "chosen" in legend(refused, refused | {"left out because": "chosen"})


NOTHING = {
    "no groups": lambda: histograms("t", {}, PLAIN, Y),
    "empty groups": lambda: histograms("t", {"a": [], "b": []}, PLAIN, Y),
    "no points": lambda: points("t", {"a": []}, X, Y),
    "no reliability": lambda: reliability_plot("t", [], X, Y),
    "no path": lambda: path("t", [], X, Y),
    "no names": lambda: bars("t", [], {"one": []}, X),
    "no series": lambda: bars("t", ["a"], {}, X),
    "empty boxes": lambda: boxes("t", {"a": [], "b": []}, X),
    "no columns": lambda: stacked("t", [], {"one": []}, Y),
    "no candidates": lambda: score_bars("t", [], ["share"], X),
    "no table": lambda: heat_map("t", np.zeros((0, 0)), [], [], "texts"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_where_there_is_nothing_to_draw_a_chart_says_so(name):
    chart = NOTHING[name]()

    assert chart.png().startswith(b"\x89PNG")
    assert "no data" in [text.get_text() for text in chart.figure.axes[0].texts]
    assert chart.figure.axes[0].get_title(loc="left") == "t"


@pytest.mark.parametrize(
    "draw",
    [
        lambda: histograms("t", {"a": [], "b": [0.5]}, X, Y),
        lambda: points("t", {"a": [], "b": [(0.0, 1.0, 0.5, 1.5)]}, X, Y),
        lambda: boxes("t", {"a": [], "b": [0.1, 0.2]}, X),
        lambda: lines("t", [], {"a": []}, X, Y),
    ],
)
def test_one_empty_series_beside_others_is_drawn(draw):
    chart = draw()

    assert chart.png().startswith(b"\x89PNG")
    assert not [text for text in chart.figure.axes[0].texts if text.get_text() == "no data"]
