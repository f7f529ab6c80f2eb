"""What is said in the end: figures of both sides, and how we stand beside their best settings. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.comparison.figures import figures, median_ratio, medians
from tests.comparison.material import Material

SHOWN = ("top1", "kept_right", "rejected", "balanced", "kept_at_our_rejection")
OURS = ("ours, ranking", "ours", "ours, known")

Report = Mapping[str, Any]


def conclude(
    material: Material, measured: Mapping[str, Any], rounds: Sequence[Mapping[str, float]]
) -> Report:
    """Everything as one JSON document.

    `points_better` are percentage points over the other side's best setting for that very figure, chosen
    with hindsight. `times_faster` are medians of the ratios within a round: of its fastest setting, and of
    the one with the highest `top1`, to each of our times.
    """
    rows = [row.choice for row in material.half(for_fitting=False)]
    ours = figures(rows, 1.0)
    settings: Sequence[Mapping[str, Any]] = measured["settings"]
    times = medians(rounds)
    compared = {
        "the fastest": min((one["name"] for one in settings), key=lambda name: times[name]),
        "the most accurate": max(settings, key=lambda one: one["top1"] or 0.0)["name"],
    }
    return {
        "report": "beside semantic-router",
        "about": {**material.about, "semantic-router": measured["version"]},
        "routes": len(material.routes),
        "rows": {
            "fitted": len(material.rows) - len(rows),
            "inside": sum(one.is_inside for one in rows),
            "outside": sum(not one.is_inside for one in rows),
        },
        "ours": {**ours, "ms": {name: times[name] for name in OURS}},
        "theirs": [{**one, "ms": times[one["name"]]} for one in settings],
        "points_better": {
            name: _points(ours["kept_right" if name == "kept_at_our_rejection" else name], name, settings)
            for name in SHOWN
        },
        "times_faster": {
            what: {one: median_ratio(_column(rounds, name), _column(rounds, one)) for one in OURS}
            for what, name in compared.items()
        },
        "rounds": len(rounds),
    }


def table(report: Report) -> Iterator[str]:
    """Lines of one Markdown table, then the ratios."""
    yield f"| {report['about']['dataset']} | {' | '.join(SHOWN)} | ms |"
    yield "| --- " * (len(SHOWN) + 2) + "|"
    ours = report["ours"]
    same = {**ours, "kept_at_our_rejection": ours["kept_right"]}
    times = " / ".join(f"{ours['ms'][name]:.3f}" for name in OURS)
    yield f"| ours | {_cells(same)} | {times} |"
    for one in report["theirs"]:
        yield f"| {one['name']} | {_cells(one)} | {one['ms']:.3f} |"
    yield ""
    yield f"ours is better by points: {report['points_better']}"
    for what, ratios in report["times_faster"].items():
        yield f"{what} takes times as long: {ratios}"


def _points(ours: float | None, name: str, settings: Sequence[Mapping[str, Any]]) -> float | None:
    theirs = [one[name] for one in settings if one[name] is not None]
    return round((ours - max(theirs)) * 100, 1) if theirs and ours is not None else None


def _column(rounds: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [one[name] for one in rounds]


def _cells(figures_of: Mapping[str, Any]) -> str:
    return " | ".join("-" if figures_of[name] is None else f"{figures_of[name]:.3f}" for name in SHOWN)
