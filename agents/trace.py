"""Prints what happened to a request: intents, candidates, deliveries, results, answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Document = Mapping[str, Any]


def print_trace(console: Console, reply: Document, decisions: Sequence[Document]) -> None:
    """The whole story of one request, in the order it happened."""
    console.print(_intents(reply))
    for decision in decisions:
        console.print(_candidates(decision))
    console.print(_deliveries(reply))
    console.print(f"[bold]{reply['status']}[/bold]  {reply['request_id']}")
    console.print(reply["answer"], style="green", markup=False)


def _intents(reply: Document) -> Table:
    table = Table("intent", "capability", "confidence", title="intents", title_justify="left")
    for part in reply["parts"]:
        table.add_row(part["intent"], part["capability"] or "-", f"{part['similarity']:.2f}")
    return table


def _candidates(decision: Document) -> Table:
    title = f"decision on “{decision['text']}”: {decision['outcome']} ({decision['reason']})"
    names = ("agent", "capability", "score", "similarity", "success", "headroom", "left out because")
    table = Table(*names, title=title, title_justify="left")
    for candidate in decision["candidates"]:
        factors = (candidate[name] for name in ("score", "similarity", "success", "headroom"))
        reason = candidate["rejection"] or "[bold]chosen[/bold]"
        table.add_row(candidate["agent_id"], candidate["capability"], *(f"{f:.2f}" for f in factors), reason)
    return table


def _deliveries(reply: Document) -> Table:
    names = ("agent", "attempts", "opened after", "took", "status", "result")
    table = Table(*names, title="deliveries and results", title_justify="left")
    for part in reply["parts"]:
        text = (part["result"] or {}).get("text") or (part["error"] or {}).get("message") or ""
        table.add_row(
            part["agent_id"] or "-",
            str(part["attempts"]),
            _milliseconds(part["waited_ms"]),
            _milliseconds(part["elapsed_ms"]),
            part["status"],
            text,
        )
    return table


def _milliseconds(value: int | None) -> str:
    return "-" if value is None else f"{value} ms"
