"""What a calibration that is not in force would say of each text: scope and similarity. Pure."""

from dataclasses import dataclass

from dispatcher.identifiers import Capability
from dispatcher.records import Struct
from dispatcher.routing.calibration import Calibration
from dispatcher.routing.decision import Outcome, ShadowDecision


class ShadowScope(Struct, frozen=True, kw_only=True):
    """Its verdict on one text; see `ranking.Ranking` for the members."""

    number: int
    in_scope: bool
    similarity: float
    scope_floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A stored calibration, by its number, that is asked beside the one in force."""

    number: int
    calibration: Calibration

    def scope(self, winner: Capability, scope_score: float, similarity_floor: float) -> ShadowScope:
        """Whether a text whose best capability is `winner` is in scope; takes microseconds."""
        floor = self.calibration.floor_of(winner)
        similarity = self.calibration.similarity_of(scope_score)
        return ShadowScope(
            number=self.number,
            in_scope=scope_score >= floor and similarity >= similarity_floor,
            similarity=similarity,
            scope_floor=floor,
        )


def shadow_decision(
    scope: ShadowScope | None, outcome: Outcome, *, was_refused: bool
) -> ShadowDecision | None:
    """What would have been decided where `outcome` was.

    `was_refused` tells that the floors in force refused the text: then nobody looked who could take it,
    and somebody is taken to have been able.
    """
    if scope is None:
        return None
    accepted = Outcome.SELECTED if was_refused else outcome
    return ShadowDecision(
        number=scope.number,
        outcome=accepted if scope.in_scope else Outcome.OUT_OF_SCOPE,
        similarity=scope.similarity,
        scope_floor=scope.scope_floor,
    )
