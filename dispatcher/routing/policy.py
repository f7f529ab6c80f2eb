"""The rule that picks among scored agents: the highest score, suspects last, ties by agent id."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.routing.slots import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """An agent that may take the intent. `is_suspect`: its heartbeats are late."""

    key: Key
    score: float
    is_suspect: bool


def highest_score(candidates: Sequence[Scored], floor: float) -> Scored | None:
    """The best candidate at or above the floor, None where there is none.

    Whoever sends heartbeats goes before every suspect, whatever the scores (requirement A4).
    """
    able = [candidate for candidate in candidates if candidate.score >= floor]
    return min(able, key=_preference, default=None)


def _preference(candidate: Scored) -> tuple[bool, float, str, str]:
    return (candidate.is_suspect, -candidate.score, candidate.key.agent_id, candidate.key.capability)
