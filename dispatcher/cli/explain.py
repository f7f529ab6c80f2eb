"""Commands that ask a running dispatcher: how a text is routed, where a declaration ranks, who is there."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from dispatcher.cli.names import read_subject
from dispatcher.cli.terminal import folding_table, terminal
from dispatcher.errors import ConfigurationError
from dispatcher.registry.access import Role
from dispatcher.sdk.client import Client

Document = Mapping[str, Any]


async def show_route(text: str, *, url: str, key: str) -> None:
    """Print intents and, for each, the candidates with every score factor or why they were left out."""
    async with Client(url, key or None) as client:
        explanation = await client.route(text)
    console = terminal()
    for intent, decision in zip(explanation["intents"], explanation["decisions"], strict=True):
        console.print(_decision_table(intent, decision))


async def show_trial(source: str, texts: Sequence[str], *, url: str, key: str) -> None:
    """Print where a declaration would rank for each text, and who is beside it.

    `source` is a JSON file, or an agent as `module:attribute`.
    """
    agent_id, declaration = _declared(source)
    async with Client(url, key or None) as client:
        rankings = await client.try_declaration(declaration, texts, agent_id=agent_id)
    console = terminal()
    for ranking in rankings:
        console.print(_ranking_table(ranking))


async def show_agents(*, url: str, key: str) -> None:
    """Print every registered agent with its state and load."""
    async with Client(url, key or None) as client:
        agents = await client.agents()
    table = folding_table("agent", "state", "load", "instances", "capabilities")
    for agent in agents:
        status = agent["status"]
        names = ", ".join(c["name"] for c in agent["declaration"]["capabilities"])
        load = f"{status['running']}/{status['capacity']}"
        state = "draining" if status["draining"] else status["liveness"]
        table.add_row(agent["agent_id"], state, load, str(len(agent["instances"])), names)
    terminal().print(table)


async def remove(agent_id: str, *, url: str, key: str) -> None:
    """Remove an agent from the registry."""
    known = read_subject(Role.AGENT, agent_id)
    async with Client(url, key or None) as client:
        await client.remove_agent(known)
    terminal().print(f"{known} is removed")


def _decision_table(intent: Document, decision: Document) -> Table:
    factors = ("score", "similarity", "success", "headroom", "cosine")
    table = folding_table("agent", "capability", *factors, "left out because")
    _entitle(table, f"“{intent['text']}” → {_verdict(decision)}")
    for candidate in decision["candidates"]:
        table.add_row(
            candidate["agent_id"],
            candidate["capability"],
            *(f"{candidate[name]:.3f}" for name in factors),
            candidate["rejection"] or "chosen",
        )
    for reason, count in decision["left_out"].items():
        table.add_row(f"{count} more", *[""] * (len(factors) + 1), reason)
    return table


def _verdict(decision: Document) -> str:
    """Who is asked and why; what nobody is asked names the capability that came nearest."""
    advice = "".join(f", {one} by a language model" for one in decision.get("advice", ()))
    why, capability = f"{decision['outcome']}, {decision['reason']}{advice}", decision["capability"]
    if decision["outcome"] == "clarify":
        return f"{', or '.join(one['capability'] for one in decision['options'])} ({why})"
    if decision["outcome"] not in {"out_of_scope", "handed_off"}:
        return f"{capability} ({why})"
    whom = "a person" if decision["outcome"] == "handed_off" else "nobody"
    return f"{whom} ({why}, nearest: {capability})" if capability else f"{whom} ({why})"


def _ranking_table(ranking: Document) -> Table:
    factors = ("score", "similarity", "cosine")
    table = folding_table("rank", "capability", "ranking", "similarity", "cosine", "agents")
    verdict = "in scope" if ranking["in_scope"] else "out of scope"
    rank = ranking["rank"] or "not among the best"
    _entitle(table, f"“{ranking['text']}”: rank {rank}, {verdict}")
    for place, row in enumerate(ranking["capabilities"], 1):
        name = Text(row["capability"], style="bold" if row["declared"] else "")
        table.add_row(str(place), name, *(f"{row[name]:.3f}" for name in factors), ", ".join(row["agents"]))
    return table


def _entitle(table: Table, title: str) -> None:
    """What somebody typed may look like markup."""
    table.title = Text(title)
    table.title_justify = "left"


def _declared(source: str) -> tuple[str | None, dict[str, Any]]:
    """The agent's id, where it is told, and its declaration."""
    file = Path(source)
    if ":" in source and not file.exists():
        from dispatcher.cli.serve import load_agent

        agent = load_agent(source)
        return agent.agent_id, agent.declaration(channel="in-process").to_json()
    document = _read_object(file)
    agent_id = document.pop("agent_id", None)
    nested = document.get("declaration")
    return agent_id, nested if isinstance(nested, dict) else document


def _read_object(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ConfigurationError(f"{str(file)!r} is not a readable JSON file") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"{str(file)!r} must hold one JSON object: a declaration")
    return document
