"""Rankings as a language model's advice sees them, and what becomes of them by it (pure)."""

from dispatcher.identifiers import Capability
from dispatcher.intents.doubt import Near, Standing
from dispatcher.intents.plan import Piece
from dispatcher.records import replace
from dispatcher.routing.decision import Advice
from dispatcher.routing.ranking import CapabilityScore, Ranking


def standing_of(ranking: Ranking, limit: int) -> Standing:
    """How a text ranks, with its `limit` best capabilities."""
    best = ranking.capabilities[0].score if ranking.capabilities else 0.0
    return Standing(
        near=tuple(
            Near(one.capability, one.similarity, best - one.score) for one in ranking.capabilities[:limit]
        ),
        in_scope=ranking.in_scope,
        below=ranking.scope_floor - ranking.scope_score,
        unit=ranking.scale,
    )


def of_piece(ranking: Ranking, piece: Piece) -> Ranking:
    """The ranking, saying so where a language model drew the piece's borders."""
    return replace(ranking, advice=(Advice.SPLIT.value,)) if piece.advised else ranking


def with_choice(ranking: Ranking, capability: Capability) -> Ranking:
    """The ranking with one of its capabilities as the winner, in scope, whatever its score."""
    return replace(
        ranking,
        capabilities=tuple(sorted(ranking.capabilities, key=lambda one: _comes_after(one, capability))),
        in_scope=True,
        advice=(*ranking.advice, Advice.CHOICE.value),
    )


def _comes_after(one: CapabilityScore, first: Capability) -> bool:
    return one.capability != first
