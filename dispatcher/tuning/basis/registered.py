"""The registered agents as the agents of an evaluation set; see `docs/tuning.md`."""

from collections.abc import Iterable, Mapping, Sequence

from dispatcher.protocol.declaration import CapabilityDeclaration
from dispatcher.registry.agent import Agent
from dispatcher.tuning.basis.rows import MOST_DESCRIPTIONS, MOST_EXAMPLES


def exported_rows(agents: Iterable[Agent]) -> list[dict[str, object]]:
    """One row for each capability, by name: the texts of all agents that declare it, each once.

    The first ones, where they are more than one declaration may hold; see `texts_left_out`.
    """
    declared = _declared(agents)
    return [_row(name, declared[name]) for name in sorted(declared)]


def texts_left_out(agents: Iterable[Agent]) -> int:
    """How many descriptions and examples are not in the rows, all capabilities together."""
    left_out = 0
    for declared in _declared(agents).values():
        left_out += max(len(_texts(one.descriptions for one in declared)) - MOST_DESCRIPTIONS, 0)
        left_out += max(len(_texts(one.examples for one in declared)) - MOST_EXAMPLES, 0)
    return left_out


def _declared(agents: Iterable[Agent]) -> Mapping[str, Sequence[CapabilityDeclaration]]:
    declared: dict[str, list[CapabilityDeclaration]] = {}
    for agent in sorted(agents, key=lambda one: one.agent_id):
        for capability in agent.declaration.capabilities:
            declared.setdefault(capability.name, []).append(capability)
    return declared


def _row(name: str, declared: Sequence[CapabilityDeclaration]) -> dict[str, object]:
    kept = _texts(one.descriptions for one in declared)[:MOST_DESCRIPTIONS]
    return {
        "id": name,
        **{f"desc_{number}": text for number, text in enumerate(kept, 1)},
        "examples": _texts(one.examples for one in declared)[:MOST_EXAMPLES],
    }


def _texts(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for one in lists for text in one))
