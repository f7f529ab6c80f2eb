"""Plots for notebooks; the one file that knows matplotlib (extra `notebooks`).

Colours are Okabe and Ito's (2008), which people with any colour vision can tell apart.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

BLUE, ORANGE, GREEN, RED, SKY, PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK)
STYLES = ("-", "--", "-.", ":")
MARKS = ("--", ":", "-.")
DOTS_PER_INCH = 90
BINS = 20
"""Of histograms."""
PLAIN = ("top", "right")

Values = TypeVar("Values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """`name` with its unit; `marks` are values with a line across and what they are."""

    name: str
    limits: tuple[float, float] | None = None
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure that a notebook shows as PNG."""

    figure: Figure

    def _repr_png_(self) -> bytes:
        """What IPython asks for."""
        return self.png()

    def png(self) -> bytes:
        """The image."""
        file = io.BytesIO()
        FigureCanvasAgg(self.figure)
        # No name of a program and its version: the same figure gives the same bytes.
        self.figure.savefig(file, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        return file.getvalue()


def histograms(title: str, groups: Mapping[str, ArrayLike], x: Axis, y: Axis) -> Chart:
    """One row of bars for each group, on one scale; heights are numbers of values."""
    if not any(len(np.asarray(values)) for values in groups.values()):
        return _no_data(title, x)
    figure = _figure(1.3 * len(groups) + 1.2)
    rows = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    every = np.concatenate([np.asarray(values, dtype=np.float64) for values in groups.values()])
    low, high = x.limits or (float(every.min()), float(every.max()))
    edges = np.linspace(low, high, BINS + 1)
    for axes, colour, (name, values) in zip(rows, cycle(COLOURS), groups.items(), strict=False):
        axes.hist(np.asarray(values), bins=edges, color=colour, edgecolor="white", linewidth=0.5)
        axes.set_ylabel(y.name)
        axes.set_title(f"{name} ({len(np.asarray(values))})", fontsize=9, loc="left")
        _mark(axes, x, with_legend=axes is rows[0])
        axes.spines[list(PLAIN)].set_visible(False)
    rows[-1].set_xlabel(x.name)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    return Chart(figure)


def lines(title: str, at: ArrayLike, series: Mapping[str, ArrayLike], x: Axis, y: Axis) -> Chart:
    """A line for each series of the same length as `at`; NaN leaves a gap."""
    figure, axes = _single(title, x, y)
    for (name, values), (colour, style) in _styled(series):
        axes.plot(np.asarray(at), np.asarray(values), color=colour, linestyle=style, label=name, linewidth=2)
    _finish(axes, x, y)
    return Chart(figure)


def points(
    title: str, series: Mapping[str, Sequence[tuple[float, float, float, float]]], x: Axis, y: Axis
) -> Chart:
    """Points (x, y, low, high) with their intervals, joined in each series."""
    if not any(series.values()):
        return _no_data(title, x)
    figure, axes = _single(title, x, y)
    for (name, rows), (colour, style) in _styled({one: rows for one, rows in series.items() if rows}):
        table = np.array(rows, dtype=np.float64)
        axes.errorbar(
            table[:, 0],
            table[:, 1],
            yerr=np.abs(table[:, 2:].T - table[:, 1]),
            color=colour,
            linestyle=style,
            marker="o",
            capsize=3,
            label=name,
        )
    _finish(axes, x, y)
    return Chart(figure)


def path(title: str, rows: Sequence[tuple[float, float, str]], x: Axis, y: Axis) -> Chart:
    """Points (x, y, name) joined in their order."""
    if not rows:
        return _no_data(title, x)
    figure, axes = _single(title, x, y)
    axes.plot([row[0] for row in rows], [row[1] for row in rows], color=BLUE, marker="o")
    for across, up, name in rows:
        axes.annotate(name, (across, up), xytext=(6, -11), textcoords="offset points", fontsize=9)
    axes.margins(0.12)
    _finish(axes, x, y)
    return Chart(figure)


def reliability_plot(
    title: str, rows: Sequence[tuple[float, float, float, float]], x: Axis, y: Axis
) -> Chart:
    """Points (predicted, observed, low, high) beside the diagonal on which a probability lies."""
    chart = points(title, {"observed, 95 %": rows}, x, y)
    axes = chart.figure.axes[0]
    axes.plot((0, 1), (0, 1), color="grey", linestyle=":", label="as predicted")
    axes.legend(frameon=False, fontsize=9)
    return chart


def bars(title: str, names: Sequence[str], series: Mapping[str, ArrayLike], x: Axis) -> Chart:
    """Horizontal bars, for each name one of each series; the first name on top."""
    if not names or not series:
        return _no_data(title, x)
    figure = _figure(0.28 * len(names) * len(series) ** 0.5 + 1.4)
    axes = figure.subplots()
    height = 0.8 / len(series)
    for number, ((name, values), (colour, _)) in enumerate(_styled(series)):
        places = np.arange(len(names)) + (number - (len(series) - 1) / 2) * height
        axes.barh(places, np.asarray(values), height=height, color=colour, label=name)
    axes.set_yticks(np.arange(len(names)), names)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=11, loc="left")
    _finish(axes, x, Axis(name=""))
    return Chart(figure)


def stacked(title: str, names: Sequence[str], series: Mapping[str, ArrayLike], y: Axis) -> Chart:
    """Columns, each made of all series."""
    if not names:
        return _no_data(title, Axis(name=""))
    figure, axes = _single(title, Axis(name=""), y)
    below = np.zeros(len(names))
    for (name, values), (colour, _) in _styled(series):
        axes.bar(names, np.asarray(values), bottom=below, color=colour, label=name, width=0.7)
        below += np.asarray(values, dtype=np.float64)
    _finish(axes, Axis(name=""), y)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))
    return Chart(figure)


def boxes(title: str, series: Mapping[str, ArrayLike], x: Axis) -> Chart:
    """Median, quartiles and 5 to 95 % of each series."""
    if not any(len(np.asarray(values)) for values in series.values()):
        return _no_data(title, x)
    figure = _figure(0.5 * len(series) + 1.4)
    axes = figure.subplots()
    drawn = axes.boxplot(
        [np.asarray(values) for values in series.values()],
        orientation="horizontal",
        whis=(5, 95),
        widths=0.6,
        showfliers=False,
        patch_artist=True,
        medianprops={"color": "black"},
    )
    for patch, colour in zip(drawn["boxes"], COLOURS, strict=False):
        patch.set_facecolor(colour)
    axes.set_yticks(np.arange(1, len(series) + 1), list(series))
    axes.invert_yaxis()
    axes.set_title(title, fontsize=11, loc="left")
    _finish(axes, x, Axis(name=""))
    return Chart(figure)


def heat_map(title: str, table: ArrayLike, rows: Sequence[str], columns: Sequence[str], what: str) -> Chart:
    """A table of numbers from 0 on, dark where they are high; zeros stay empty."""
    values = np.asarray(table, dtype=np.float64)
    if not values.size:
        return _no_data(title, Axis(name=what))
    figure = Figure(figsize=(0.48 * len(columns) + 3.2, 0.36 * len(rows) + 2.4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(values, cmap="Blues", vmin=0, aspect="auto")
    axes.set_xticks(np.arange(len(columns)), columns, rotation=60, ha="right")
    axes.set_yticks(np.arange(len(rows)), rows)
    for (row, column), value in np.ndenumerate(values):
        if value:
            colour = "white" if value > 0.6 * values.max() else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=8, color=colour)
    figure.colorbar(image, label=what)
    axes.set_title(title, fontsize=11, loc="left")
    return Chart(figure)


def score_bars(title: str, rows: Sequence[Mapping[str, object]], shares: Sequence[str], x: Axis) -> Chart:
    """Candidates' scores (`review.weighted`), each made of its shares; a star marks the chosen one."""
    if not rows:
        return _no_data(title, x)
    figure = _figure(0.32 * len(rows) + 1.6)
    axes = figure.subplots()
    names = [f"{row['agent_id']} · {row['capability']}" for row in rows]
    alphas = [1.0 if row["left out because"] == "chosen" else 0.4 for row in rows]
    left = np.zeros(len(rows))
    for share, colour in zip(shares, COLOURS, strict=False):
        widths = np.array([row[share] for row in rows], dtype=np.float64)
        drawn = axes.barh(names, widths, left=left, color=colour, label=share)
        left += widths
        for bar, alpha in zip(drawn, alphas, strict=True):
            bar.set_alpha(alpha)
    chosen = [at for at, alpha in enumerate(alphas) if alpha == 1.0]
    if chosen:
        axes.plot(left[chosen] + 0.03, chosen, "k*", markersize=11, label="chosen")
    axes.invert_yaxis()
    axes.set_title(title, fontsize=11, loc="left")
    _finish(axes, x, Axis(name=""))
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return Chart(figure)


def _figure(height: float) -> Figure:
    return Figure(figsize=(8, height), layout="constrained")


def _no_data(title: str, x: Axis) -> Chart:
    """What stands where a chart would: there is nothing to draw."""
    figure, axes = _single(title, x, Axis(name=""))
    axes.text(0.5, 0.5, "no data", ha="center", va="center", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[list(PLAIN)].set_visible(False)
    return Chart(figure)


def _single(title: str, x: Axis, y: Axis) -> tuple[Figure, Axes]:
    figure = _figure(3.8)
    axes = figure.subplots()
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(x.name)
    axes.set_ylabel(y.name)
    return figure, axes


def _styled(
    series: Mapping[str, Values],
) -> Iterator[tuple[tuple[str, Values], tuple[str, str]]]:
    """Each series with its colour and line."""
    return zip(series.items(), zip(cycle(COLOURS), cycle(STYLES), strict=False), strict=False)


def _finish(axes: Axes, x: Axis, y: Axis) -> None:
    axes.set_xlabel(x.name)
    axes.spines[list(PLAIN)].set_visible(False)
    axes.grid(visible=True, axis="both", color="0.9", linewidth=0.7)
    axes.set_axisbelow(True)
    if x.limits:
        axes.set_xlim(*x.limits)
    if y.limits:
        axes.set_ylim(*y.limits)
    _mark(axes, x, with_legend=False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=9)


def _mark(axes: Axes, x: Axis, *, with_legend: bool) -> None:
    for (name, value), style in zip(x.marks.items(), cycle(MARKS), strict=False):
        axes.axvline(value, color="black", linestyle=style, linewidth=1.2, label=name)
    if with_legend and x.marks:
        axes.legend(frameon=False, fontsize=9)
