"""Splits a message into pieces that ask for one thing each, with one ranking batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.intents.antecedent import with_antecedents
from dispatcher.intents.clause import Clause, cut_clauses, keep_strongest
from dispatcher.intents.connective import CutKind
from dispatcher.intents.filler import is_asking, is_courtesy, is_pointing, is_standing
from dispatcher.intents.plan import Piece, Rank
from dispatcher.intents.recent_readings import RecentReadings
from dispatcher.intents.reference import is_condition, is_item, is_leaning
from dispatcher.intents.segment import DecomposeRules, choose_spans
from dispatcher.intents.span_table import Span, SpanTable, all_spans
from dispatcher.traditional import simplified


class RuleDecomposer:
    """Clauses, then the ranks of all their spans in one batch, then the rules of `segment`.

    A message of one clause needs no ranking; of nine it needs 45 texts ranked, never more.
    """

    def __init__(self, rules: DecomposeRules) -> None:
        self._rules = rules
        self._begin = RecentReadings(self._begun)

    async def split(self, message: str, rank: Rank) -> tuple[Piece, ...]:
        """See `plan.Decomposer`; errors of `rank` pass through."""
        read, whole = self._begin(message)
        if whole is not None:
            return (whole,)
        spans = all_spans(len(read.clauses))
        pieces = {span: self._piece(message, read.clauses, span) for span in spans}
        table = SpanTable(
            cuts=[clause.cut for clause in read.clauses],
            asking=read.asking,
            standing=read.standing,
            leaning=read.leaning,
            items=read.items,
            ranks=dict(zip(spans, await rank([piece.ranked for piece in pieces.values()]), strict=True)),
        )
        return with_antecedents(message, [pieces[span] for span in choose_spans(table, self._rules)])

    def _begun(self, message: str) -> tuple["ReadClauses", Piece | None]:
        """What is read once in a message: its clauses and, where there is one alone, the piece that it is."""
        read = read_clauses(message)
        return read, self._piece(message, read.clauses, (0, 1)) if len(read.clauses) == 1 else None

    def _piece(self, message: str, clauses: Sequence[Clause], span: Span) -> Piece:
        start, end = clauses[span[0]].start, clauses[span[1] - 1].end
        text = message[start:end]
        asked = shortened(simplified(text), self._rules.ranked_characters)
        return Piece(text=text, start=start, end=end, asked=None if asked == text else asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClauses:
    """The clauses of a message, which of them ask for something and which of these by themselves."""

    clauses: tuple[Clause, ...]
    asking: tuple[bool, ...]
    standing: tuple[bool, ...]
    leaning: tuple[bool, ...]
    items: tuple[bool, ...]


def read_clauses(message: str) -> ReadClauses:
    """What of a message's split follows from its text alone."""
    clauses = keep_strongest(with_conditions(message, topical_clauses(message)))
    return ReadClauses(
        clauses=clauses,
        asking=tuple(is_asking(*_said(message, clause)) for clause in clauses),
        standing=tuple(_stands(message, clause) for clause in clauses),
        items=tuple(is_item(message[clause.start : clause.end]) for clause in clauses),
        leaning=tuple(is_leaning(message[clause.start : clause.end]) for clause in clauses),
    )


def topical_clauses(message: str) -> tuple[Clause, ...]:
    """The clauses that name a topic, at least one.

    Courtesy is left out. A clause that only points at another ("can you help") goes with the
    one before it in its sentence, else with the one after it, else it is left out. A message
    of nothing else is one clause.
    """
    clauses = cut_clauses(message)
    topical: list[Clause] = []
    pending: Clause | None = None
    for clause in clauses:
        words = message[clause.start : clause.end]
        if is_courtesy(words):
            continue
        if not is_pointing(words):
            topical.append(_prefixed(pending, clause))
            pending = None
        elif topical and clause.cut is not CutKind.SENTENCE and pending is None:
            topical[-1] = Clause(start=topical[-1].start, end=clause.end, cut=topical[-1].cut)
        else:
            pending = pending or clause
    return tuple(topical) or (Clause(start=clauses[0].start, end=clauses[-1].end, cut=CutKind.SENTENCE),)


def with_conditions(message: str, clauses: Sequence[Clause]) -> tuple[Clause, ...]:
    """A condition goes with the clause after it in its sentence, else with the one before it."""
    joined: list[Clause] = []
    is_open = False
    for clause, following in zip(clauses, [*clauses[1:], None], strict=True):
        is_one = is_condition(message[clause.start : clause.end])
        belongs = is_open or (is_one and (following is None or following.cut >= CutKind.ASIDE))
        if belongs and joined and clause.cut < CutKind.ASIDE:
            joined[-1] = Clause(start=joined[-1].start, end=clause.end, cut=joined[-1].cut)
        else:
            joined.append(clause)
        is_open = is_one
    return tuple(joined)


def _prefixed(pending: Clause | None, clause: Clause) -> Clause:
    if pending is None or clause.cut is CutKind.SENTENCE:
        return clause
    return Clause(start=pending.start, end=clause.end, cut=pending.cut)


def _stands(message: str, clause: Clause) -> bool:
    """The mark at the end of a sentence of many clauses says nothing of its last clause alone."""
    words, mark = _said(message, clause)
    return is_standing(words, mark if clause.cut is CutKind.SENTENCE else "")


def _said(message: str, clause: Clause) -> tuple[str, str]:
    """The clause and the character after it."""
    return message[clause.start : clause.end], message[clause.end : clause.end + 1]


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters: of a longer text its beginning and its end, in which most wishes stand."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[: limit - half - 1]} {text[len(text) - half :]}"
