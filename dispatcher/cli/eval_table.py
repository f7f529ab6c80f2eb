"""Figures of `dispatcher eval` for people."""

from collections.abc import Mapping
from typing import Any

from dispatcher.cli.terminal import folding_table, terminal

Report = Mapping[str, Any]
WORST_AGENTS = 10
CONFUSIONS = 20


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
        table.add_row(name, "-", reason, "0")
    for name, (low, high) in report["intervals"].items():
        table.add_row(name, f"{report[name]:.3f}", f"{low:.3f} to {high:.3f}", str(report["counts"][name]))
    terminal().print(table)


def _print_registries(report: Report) -> None:
    table = folding_table("figure", "worst draw", "changed by replicas and twins")
    for name, worst in report["worst"].items():
        table.add_row(name, f"{worst:.3f}", f"{report['changed'][name]:+.3f}")
    terminal().print(table)


def _print_groups(report: Report) -> None:
    table = folding_table("of", "requests", "top1", "in_scope_lost")
    worst = sorted(report["by_agent"].items(), key=lambda item: (item[1]["top1"], item[0]))[:WORST_AGENTS]
    languages = [(f"language {name}", found) for name, found in report["by_language"].items()]
    for name, found in (*languages, *worst):
        table.add_row(name, str(found["of"]), f"{found['top1']:.3f}", f"{found['in_scope_lost']:.3f}")
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
    shown = ("dataset", "agents", "examples", "requests", "messages", "registered_texts", "renamed")
    facts = (
        {name: report[name] for name in (*shown, "shortened", "seed")}
        | report.get("registry", {})
        | report["versions"]
    )
    for name, value in facts.items():
        console.print(f"{name}: {value}")
