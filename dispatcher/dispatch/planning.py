"""From a message to its plan and the ranking behind each intent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dispatcher.clock import Calendar
from dispatcher.dispatch.request import ChatMessage
from dispatcher.identifiers import Capability
from dispatcher.intents.assemble import CapabilitySchema, RankedPiece, build_plan
from dispatcher.intents.entity import extract_entities
from dispatcher.intents.language import detect_language
from dispatcher.intents.plan import Decomposer, Piece, Plan, SpanRank
from dispatcher.registry.repository import CapabilityContract
from dispatcher.routing.router import Ranking, Router


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan and, by intent position, the ranking it came from.

    There are no rankings where the caller named the capability.
    """

    plan: Plan
    rankings: tuple[Ranking, ...]

    def ranking(self, position: int) -> Ranking | None:
        """The ranking of one intent."""
        return self.rankings[position] if self.rankings else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Splits, ranks and links. `contracts` gives the registered capabilities' schemas at this moment."""

    decomposer: Decomposer
    router: Router
    contracts: Callable[[], Mapping[Capability, CapabilityContract]]
    calendar: Calendar

    async def plan(self, message: ChatMessage) -> Planned:
        """Understand a message: encoder batches are the only waiting.

        Raises OverloadedError when the encoder's queue is full.
        """
        language = message.language or detect_language(message.message)
        if message.capability is not None:
            pieces: Sequence[RankedPiece] = (_whole_message(message.message, message.capability),)
            return self._assemble(message, pieces, language, ())
        found = await self.decomposer.split(message.message, self._rank)
        rankings = await self.router.rank([piece.text for piece in found])
        pieces = [_ranked_piece(p, r) for p, r in zip(found, rankings, strict=True)]
        return self._assemble(message, pieces, language, rankings)

    async def _rank(self, texts: Sequence[str]) -> Sequence[SpanRank]:
        return [span_rank(ranking) for ranking in await self.router.rank(texts)]

    def _assemble(
        self,
        message: ChatMessage,
        pieces: Sequence[RankedPiece],
        language: str,
        rankings: tuple[Ranking, ...],
    ) -> Planned:
        plan = build_plan(
            pieces,
            schemas=_schemas(self.contracts()),
            entities=extract_entities(message.message, language=language, today=self.calendar.now().date()),
            context=message.context,
            language=language,
        )
        return Planned(plan=plan, rankings=rankings)


def span_rank(ranking: Ranking) -> SpanRank:
    """What the decomposer needs of a ranking."""
    if not ranking.capabilities:
        return SpanRank(capability=None, score=0.0, similarity=0.0, in_scope=False)
    best = ranking.capabilities[0]
    return SpanRank(
        capability=best.capability,
        score=best.cosine,
        similarity=best.similarity,
        in_scope=ranking.in_scope,
    )


def _ranked_piece(piece: Piece, ranking: Ranking) -> RankedPiece:
    best = ranking.capabilities[0] if ranking.capabilities else None
    return RankedPiece(
        piece=piece,
        capability=best.capability if best and ranking.in_scope else None,
        similarity=best.similarity if best else 0.0,
    )


def _whole_message(text: str, capability: Capability) -> RankedPiece:
    return RankedPiece(piece=Piece(text=text, start=0, end=len(text)), capability=capability, similarity=1.0)


def _schemas(contracts: Mapping[Capability, CapabilityContract]) -> dict[Capability, CapabilitySchema]:
    return {
        name: CapabilitySchema(
            capability=name, input_schema=contract.input_schema, output_schema=contract.output_schema
        )
        for name, contract in contracts.items()
    }
