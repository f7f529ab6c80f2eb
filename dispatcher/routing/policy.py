"""The rule that picks among scored agents: the highest score, suspects last, ties by agent id."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from dispatcher.routing.slots import Key


class Scored(Protocol):
    """An agent that may take the intent."""

    @property
    def key(self) -> Key:
        """The agent and the capability."""
        ...

    @property
    def score(self) -> float:
        """Its composite score."""
        ...

    @property
    def is_suspect(self) -> bool:
        """Whether its heartbeats are late."""
        ...


One = TypeVar("One", bound=Scored)


def highest_score(candidates: Iterable[One], floor: float) -> One | None:
    """The best candidate at or above the floor, None where there is none.

    Whoever sends heartbeats goes before every suspect, whatever the scores (requirement A4).
    """
    able = [candidate for candidate in candidates if candidate.score >= floor]
    return min(able, key=_preference, default=None)


def _preference(candidate: Scored) -> tuple[bool, float, str, str]:
    return (candidate.is_suspect, -candidate.score, candidate.key.agent_id, candidate.key.capability)
