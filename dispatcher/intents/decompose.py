"""Splits a message into pieces that ask for one thing each, with one ranking batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from dispatcher.intents.clause import Clause, CutKind, cut_clauses, keep_strongest
from dispatcher.intents.filler import is_asking, is_courtesy, is_pointing, is_standing
from dispatcher.intents.plan import Piece, Rank
from dispatcher.intents.recent_texts import RecentTexts
from dispatcher.intents.segment import DecomposeRules, Span, SpanTable, all_spans, choose_spans


class RuleDecomposer:
    """Clauses, then the ranks of all their spans in one batch, then the rules of `segment`.

    A message of one clause needs no ranking; of nine it needs 45 texts ranked, never more.
    """

    def __init__(self, rules: DecomposeRules) -> None:
        self._rules = rules
        self._read = RecentTexts(read_clauses)

    async def split(self, message: str, rank: Rank) -> tuple[Piece, ...]:
        """See `plan.Decomposer`; errors of `rank` pass through."""
        read = self._read(message)
        if len(read.clauses) == 1:
            return (_piece(message, read.clauses, (0, 1)),)
        spans = all_spans(len(read.clauses))
        texts = [_piece(message, read.clauses, span).text[: self._rules.ranked_characters] for span in spans]
        table = SpanTable(
            cuts=[clause.cut for clause in read.clauses],
            asking=read.asking,
            standing=read.standing,
            ranks=dict(zip(spans, await rank(texts), strict=True)),
        )
        return tuple(_piece(message, read.clauses, span) for span in choose_spans(table, self._rules))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClauses:
    """The clauses of a message, which of them ask for something and which of these by themselves."""

    clauses: tuple[Clause, ...]
    asking: tuple[bool, ...]
    standing: tuple[bool, ...]


def read_clauses(message: str) -> ReadClauses:
    """What of a message's split follows from its text alone."""
    clauses = keep_strongest(topical_clauses(message))
    return ReadClauses(
        clauses=clauses,
        asking=tuple(is_asking(*_said(message, clause)) for clause in clauses),
        standing=tuple(_stands(message, clause) for clause in clauses),
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


def _piece(message: str, clauses: Sequence[Clause], span: Span) -> Piece:
    start, end = clauses[span[0]].start, clauses[span[1] - 1].end
    return Piece(text=message[start:end], start=start, end=end)
