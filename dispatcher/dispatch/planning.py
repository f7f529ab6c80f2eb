"""From a message to its plan and the ranking behind each intent."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dispatcher.clock import Calendar
from dispatcher.dispatch.request import ChatMessage
from dispatcher.dispatch.session import Question, Session
from dispatcher.identifiers import Capability
from dispatcher.intents.assemble import CapabilitySchema, RankedPiece, build_plan
from dispatcher.intents.entity import extract_entities
from dispatcher.intents.follow_up import fill
from dispatcher.intents.language import detect_language
from dispatcher.intents.plan import Decomposer, Entity, Piece, Plan, SpanRank
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

    async def plan(self, message: ChatMessage, session: Session | None = None) -> Planned:
        """Understand a message: encoder batches are the only waiting.

        A message that answers what the session was asked takes that intent up again.
        Raises OverloadedError when the encoder's queue is full.
        """
        language = message.language or detect_language(message.message)
        if message.capability is not None:
            pieces: Sequence[RankedPiece] = (_whole_message(message.message, message.capability),)
            return self._assemble(message, pieces, language, ())
        if session is not None and session.questions:
            taken_up = await self._take_up(message, session.questions, language)
            if taken_up is not None:
                return taken_up
        found = await self.decomposer.split(message.message, self._rank)
        rankings = await self.router.rank([piece.text for piece in found])
        pieces = [_ranked_piece(p, r) for p, r in zip(found, rankings, strict=True)]
        return self._assemble(message, pieces, language, rankings)

    async def _take_up(
        self, message: ChatMessage, questions: Sequence[Question], language: str
    ) -> Planned | None:
        """The plan of the first question that the message answers, None where it answers none."""
        (ranking,) = await self.router.rank([message.message])
        schemas = _schemas(self.contracts(), {question.capability for question in questions})
        entities = self._entities(message.message, language)
        for question in questions:
            if question.capability not in schemas:
                continue
            filled = fill(
                schemas[question.capability].input_schema,
                question.fields,
                message.message,
                entities,
                in_scope=ranking.in_scope,
            )
            if filled is not None:
                return self._assemble(
                    _answered(message, question, filled), (_again(question, message),), language, ()
                )
        return None

    def _entities(self, text: str, language: str) -> tuple[Entity, ...]:
        return extract_entities(text, language=language, today=self.calendar.now().date())

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
            schemas=_schemas(self.contracts(), {piece.capability for piece in pieces}),
            entities=self._entities(message.message, language),
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


def _answered(message: ChatMessage, question: Question, filled: Mapping[str, object]) -> ChatMessage:
    """The message with what is known by now as its context: nobody is asked for it again."""
    known = {**message.context, **question.inputs, **filled}
    return replace(message, message=f"{question.text}\n{message.message}", context=known)


def _again(question: Question, message: ChatMessage) -> RankedPiece:
    text = f"{question.text}\n{message.message}"
    piece = Piece(text=text, start=0, end=len(text))
    return RankedPiece(piece=piece, capability=question.capability, similarity=question.similarity)


def _whole_message(text: str, capability: Capability) -> RankedPiece:
    return RankedPiece(piece=Piece(text=text, start=0, end=len(text)), capability=capability, similarity=1.0)


def _schemas(
    contracts: Mapping[Capability, CapabilityContract], wanted: Collection[Capability | None]
) -> dict[Capability, CapabilitySchema]:
    """Of the wanted ones alone: a registry may have thousands."""
    return {
        name: CapabilitySchema(
            capability=name,
            input_schema=contracts[name].input_schema,
            output_schema=contracts[name].output_schema,
        )
        for name in wanted
        if name is not None and name in contracts
    }
