"""From a message to its plan and the ranking behind each intent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dispatcher.clock import Calendar
from dispatcher.dispatch.lifecycle.request import ChatMessage
from dispatcher.dispatch.lifecycle.session import Question, Session
from dispatcher.dispatch.option_choice import chosen_option, reads_as_choice
from dispatcher.dispatch.ties import Ties
from dispatcher.identifiers import Capability
from dispatcher.intents.assemble import RankedPiece, build_plan
from dispatcher.intents.declared_fields import DeclaredFields
from dispatcher.intents.follow_up import continuing, fill, is_continued, named_before
from dispatcher.intents.plan import Decomposer, Piece, Plan, SpanRank
from dispatcher.intents.reading import Reading, read_text
from dispatcher.intents.recent_readings import RecentReadings
from dispatcher.records import Struct, replace
from dispatcher.registry.repository import CapabilityContract
from dispatcher.routing.reindex import Routes
from dispatcher.routing.router import Ranking
from dispatcher.routing.rules import ClarifyRules


class Planned(Struct, frozen=True, kw_only=True):
    """A plan and, by intent position, the ranking it came from.

    There are no rankings where the caller named the capability. Where the caller described it, `described`
    is how, and a person takes what no agent can. `still_asked` are questions of the session that are open
    beside the one that the message answers.
    """

    plan: Plan
    rankings: tuple[Ranking, ...]
    described: str | None = None
    still_asked: tuple[Question, ...] = ()

    def ranking(self, position: int) -> Ranking | None:
        """The ranking of one intent."""
        return self.rankings[position] if self.rankings else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Reads, splits, ranks and links.

    `contracts` gives the registered capabilities' schemas at this moment: a mapping that never
    changes, another one where they did. `read` may remember what it read. Without `ties` the best
    capability of a ranking wins, however near the next one is. `clarify` says when an answer to "which
    one?" is clear, `semantic_bar` from which calibrated similarity on a description is acted on.
    """

    decomposer: Decomposer
    router: Routes
    contracts: Callable[[], Mapping[Capability, CapabilityContract]]
    calendar: Calendar
    read: Callable[[str, str | None, date], Reading] = field(
        default_factory=lambda: RecentReadings(read_text)
    )
    fields: DeclaredFields = field(default_factory=DeclaredFields)
    ties: Ties | None = None
    clarify: ClarifyRules = field(default_factory=ClarifyRules)
    semantic_bar: float = 0.95

    async def plan(self, message: ChatMessage, session: Session | None = None) -> Planned:
        """Understand a message: encoder batches are the only waiting, and advice where that is asked for.

        `session` is as the message's user finds it. A message that answers one of its questions takes that
        intent up again; one that goes on with a topic is ranked with it.
        Raises OverloadedError when the encoder's queue is full.
        """
        reading = self._read_today(message.message, message.language)
        if message.capability is not None:
            pieces: Sequence[RankedPiece] = (_whole_message(message.message, message.capability, 1.0),)
            return self._assemble(message, pieces, reading, ())
        if message.wanted is not None:
            return await self._described(message, message.wanted, reading)
        if session is not None and session.questions:
            taken_up = await self._take_up(message, session.questions, reading)
            if taken_up is not None:
                return taken_up
        if session is not None and session.topics:
            goes_on = await self._go_on(message, session.topics, reading)
            if goes_on is not None:
                return goes_on
        found = await self.decomposer.split(message.message, self._rank)
        rankings = await self.router.rank([piece.ranked for piece in found])
        if self.ties is not None:
            rankings = await self.ties.settle(message.message, found, rankings)
        pieces = [_ranked_piece(p, r) for p, r in zip(found, rankings, strict=True)]
        return self._assemble(message, pieces, reading, rankings)

    async def _described(self, message: ChatMessage, wanted: str, reading: Reading) -> Planned:
        """The whole message for the capability described, if one fits well enough, else for a person."""
        (ranking,) = await self.router.rank([wanted])
        best = ranking.winner
        is_sure = ranking.in_scope and ranking.calibration != "uncalibrated"
        if best is not None and is_sure and best.similarity >= self.semantic_bar:
            piece = _whole_message(message.message, best.capability, best.similarity)
            return replace(self._assemble(message, (piece,), reading, ()), described=wanted)
        piece = _whole_message(message.message, None, best.similarity if best else 0.0)
        refused = replace(ranking, in_scope=False)
        return replace(self._assemble(message, (piece,), reading, (refused,)), described=wanted)

    async def _take_up(
        self, message: ChatMessage, questions: Sequence[Question], reading: Reading
    ) -> Planned | None:
        """The plan of the first question that the message answers, None where it answers none.

        What reads like a reply to options is nothing for the questions behind these, though it may choose
        none: "neither" and "4" would fit any text that an agent asked for. Before them it may be an answer.
        """
        (ranking,) = await self.router.rank([message.message])
        is_choice = False
        for place, question in enumerate(questions):
            is_choice = is_choice or reads_as_choice(question, message.message)
            if is_choice and not question.options:
                continue
            answered = self._answer(message, question, reading, ranking)
            if answered is not None:
                others = (*questions[:place], *questions[place + 1 :])
                return replace(answered, still_asked=others)
        return None

    def _answer(
        self, message: ChatMessage, question: Question, reading: Reading, ranking: Ranking
    ) -> Planned | None:
        """The plan of the question's text with what the message says to it, None where that is nothing."""
        contracts = self.contracts()
        if question.options:
            has_entities = bool(reading.entities)
            option = chosen_option(
                question, message.message, ranking, self.clarify, has_entities=has_entities
            )
            is_there = option is not None and option[0] in contracts
            return self._as_chosen(message, question.text, option) if option and is_there else None
        if question.capability not in contracts:
            return None
        filled = fill(
            contracts[question.capability].input_schema,
            question.fields,
            message.message,
            reading.entities,
            in_scope=ranking.in_scope,
        )
        if filled is None:
            return None
        whole = _answered(message, question, filled)
        again = _again(question, whole.message)
        return self._assemble(whole, (again,), self._read_today(whole.message, reading.language), ())

    async def _go_on(self, message: ChatMessage, topics: Sequence[str], reading: Reading) -> Planned | None:
        """The plan of a message that means more behind a topic, None where it doesn't."""
        piece = continuing(topics, message.message)
        if piece is None or piece.antecedent is None:
            return None
        alone, together = await self.router.rank([message.message, piece.ranked])
        if not is_continued(message.message, span_rank(alone), span_rank(together)):
            return None
        topic = piece.antecedent.text
        named = named_before(topic, self._read_today(topic, message.language).entities)
        known = replace(reading, entities=(*reading.entities, *named))
        return self._assemble(message, (_ranked_piece(piece, together),), known, (together,))

    def _as_chosen(self, message: ChatMessage, text: str, option: tuple[Capability, float]) -> Planned:
        """The plan of the text that was asked about, for the option that the message chose."""
        piece = _whole_message(text, *option)
        return self._assemble(message, (piece,), self._read_today(text, message.language), ())

    def _read_today(self, text: str, language: str | None) -> Reading:
        return self.read(text, language, self.calendar.now().date())

    async def _rank(self, texts: Sequence[str]) -> Sequence[SpanRank]:
        return [span_rank(ranking) for ranking in await self.router.rank(texts)]

    def _assemble(
        self,
        message: ChatMessage,
        pieces: Sequence[RankedPiece],
        reading: Reading,
        rankings: tuple[Ranking, ...],
    ) -> Planned:
        plan = build_plan(
            pieces,
            fields=self.fields.of(self.contracts(), [piece.capability for piece in pieces]),
            entities=reading.entities,
            context=message.context,
            language=reading.language,
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


def _again(question: Question, text: str) -> RankedPiece:
    piece = Piece(text=text, start=0, end=len(text))
    return RankedPiece(piece=piece, capability=question.capability, similarity=question.similarity)


def _whole_message(text: str, capability: Capability | None, similarity: float) -> RankedPiece:
    piece = Piece(text=text, start=0, end=len(text))
    return RankedPiece(piece=piece, capability=capability, similarity=similarity)
