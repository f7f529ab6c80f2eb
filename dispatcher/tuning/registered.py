"""The registered agents as the agents of an evaluation set; see `docs/tuning.md`."""

from collections.abc import Iterable, Mapping

from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.registry.agent import Agent

MOST_DESCRIPTIONS = 4


def agent_rows(agents: Iterable[Agent]) -> list[dict[str, object]]:
    """One row for each capability, by name: the texts of all agents that declare it, each once."""
    declared: dict[str, list[CapabilityDeclaration]] = {}
    for agent in sorted(agents, key=lambda one: one.agent_id):
        for capability in agent.declaration.capabilities:
            declared.setdefault(capability.name, []).append(capability)
    return [_row(name, declared) for name in sorted(declared)]


def _row(name: str, declared: Mapping[str, list[CapabilityDeclaration]]) -> dict[str, object]:
    descriptions = dict.fromkeys(text for one in declared[name] for text in one.descriptions)
    examples = dict.fromkeys(text for one in declared[name] for text in one.examples)
    kept = list(descriptions)[:MOST_DESCRIPTIONS]
    return {
        "id": name,
        **{f"desc_{number}": text for number, text in enumerate(kept, 1)},
        "examples": list(examples),
    }
