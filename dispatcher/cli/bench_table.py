"""Figures of a benchmark for people."""

from collections.abc import Mapping
from typing import Any

from dispatcher.cli.terminal import folding_table, terminal

Report = Mapping[str, Any]
_MS = ("p50_ms", "p95_ms", "p99_ms")


def print_report(report: Report) -> None:
    """Print the tables of whichever benchmark it is."""
    tables = {
        "route": _print_route,
        "roundtrip": _print_roundtrip,
        "load": _print_load,
        "memory": _print_memory,
    }
    tables[report["benchmark"]](report)


def _print_route(report: Report) -> None:
    table = folding_table("agents", "step", *_MS)
    for size, point in report["agents"].items():
        for name, figures in point["steps"].items():
            table.add_row(size, name, *(f"{figures[share]:.3f}" for share in _MS))
    terminal().print(table)
    _print_values(
        {
            f"{size} {name}": value
            for size, point in report["agents"].items()
            for name, value in point["ratios"].items()
        }
    )


def _print_roundtrip(report: Report) -> None:
    table = folding_table("callers", "what", "requests/s", *_MS, "CPU ms of each process", "failed")
    for concurrency, contestants in report["points"].items():
        for name, figures in contestants.items():
            cpu = ", ".join(f"{process} {ms:.2f}" for process, ms in figures["cpu_ms"].items())
            shares = (f"{figures[share]:.1f}" for share in _MS)
            table.add_row(concurrency, name, f"{figures['rate']:.0f}", *shares, cpu, str(figures["failed"]))
    terminal().print(table)
    for concurrency, ratios in report["ratios"].items():
        _print_values({f"ratio at {concurrency} to {name}": value for name, value in ratios.items()})
    over = {name: value for name, value in report.items() if name.startswith("p50_over")}
    _print_values({**over, "fsync_ms": report["fsync_ms"], **report["left_out"]})


def _print_load(report: Report) -> None:
    highest = report.get("highest")
    if highest:
        table = folding_table("requests/s", "p99_ms", "kept up with")
        for step in highest["steps"]:
            table.add_row(f"{step['rate']:.0f}", f"{step['p99_ms']:.0f}", "yes" if step["kept"] else "no")
        terminal().print(table)
        _print_values({f"held {name}": value for name, value in (highest["held"] or {}).items()})
    _print_values({name: value for name, value in report.items() if name != "highest"})


def _print_memory(report: Report) -> None:
    stages = ("started", "registered", "worked", "peak")
    table = folding_table("process", *(f"{stage} MB" for stage in stages), "mark MB")
    for name, figures in report["rss_mb"].items():
        table.add_row(name, *(f"{figures[stage]:.0f}" for stage in stages), str(report["marks_mb"][name]))
    terminal().print(table)
    shown = ("mode", "encoder", "agents", "registered_s", "completed", "failed")
    _print_values({name: report[name] for name in shown} | report["left_out"])


def _print_values(values: Mapping[str, Any]) -> None:
    console = terminal()
    for name, value in values.items():
        console.print(f"{name}: {value}")
