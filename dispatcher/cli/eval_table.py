"""Figures of `dispatcher eval` for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.cli.terminal import folding_table, terminal

Report = Mapping[str, Any]
WORST_AGENTS = 10
CONFUSIONS = 20
ORIGIN = (
    *("dataset", "agents", "examples", "requests", "messages", "registered_texts", "repeated_texts"),
    *("renamed", "shortened", "seed", "not_measured"),
)
"""What is said of where a report comes from."""


def print_report(report: Report) -> None:
    """Print the tables of whichever report it is."""
    _print_figures(report)
    if report["report"] == "registries":
        _print_registries(report)
    else:
        _print_groups(report)
        _print_confusions(report)
    _print_origin(report)


def _print_figures(report: Report) -> None:
    table = folding_table("figure", "value", "95 %", "of")
    for name, reason in report["left_out"].items():
        value = "-" if report[name] is None else f"{report[name]:.3f}"
        table.add_row(name, value, reason, str(report["counts"].get(name, 0)))
    for name, (low, high) in report["intervals"].items():
        table.add_row(name, f"{report[name]:.3f}", _shown([low, high]), str(report["counts"][name]))
    terminal().print(table)


def _print_registries(report: Report) -> None:
    table = folding_table("figure", "worst draw", "changed by replicas and twins")
    for name, worst in report["worst"].items():
        table.add_row(name, f"{worst:.3f}", f"{report['changed'][name]:+.3f}")
    terminal().print(table)


def _print_groups(report: Report) -> None:
    """The agents that are worst for certain: a capability of three requests may look bad by chance."""
    table = folding_table("of", "requests", "top1", "95 %", "in_scope_lost", "95 %")
    worst = sorted(report["by_agent"].items(), key=lambda item: (item[1]["intervals"]["top1"][1], item[0]))
    languages = [(f"language {name}", found) for name, found in report["by_language"].items()]
    for name, found in (*languages, *worst[:WORST_AGENTS]):
        cells = [(f"{found[one]:.3f}", _shown(found["intervals"][one])) for one in ("top1", "in_scope_lost")]
        table.add_row(name, str(found["of"]), *cells[0], *cells[1])
    if table.row_count:
        terminal().print(table)


def _print_confusions(report: Report) -> None:
    table = folding_table("wanted", "won", "requests")
    for one in report["confusions"][:CONFUSIONS]:
        table.add_row(one["wanted"], one["won"], str(one["count"]))
    if table.row_count:
        terminal().print(table)


def _print_origin(report: Report) -> None:
    console = terminal()
    facts = (
        {name: report[name] for name in ORIGIN if report[name] != []}
        | report.get("registry", {})
        | report["versions"]
    )
    for name, value in facts.items():
        console.print(f"{name}: {value}")


def _shown(interval: Sequence[float]) -> str:
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
