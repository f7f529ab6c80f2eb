"""The plan of a request: its intents, in the order asked, and which waits for which."""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Protocol

from dispatcher.identifiers import Capability
from dispatcher.records import Struct, field

MAX_INTENTS = 8


class EntityKind(StrEnum):
    """The kinds of key entity that are recognised; an input field of that name is filled by it."""

    ORDER_NUMBER = "order_number"
    PHONE = "phone"
    DATE = "date"
    AMOUNT = "amount"
    ANTECEDENT = "antecedent"
    """What the intent's own words refer to: a stretch of the message before them."""


class Entity(Struct, frozen=True, kw_only=True):
    """One thing named in the text. `start` and `end` count characters of the whole message.

    `value` is normalised: phone E.164, date ISO 8601, amount a number in the unit written.
    """

    kind: EntityKind
    text: str
    value: str | float
    start: int
    end: int

    def to_json(self) -> dict[str, str | float]:
        """Plain JSON values, as stored and sent."""
        return {
            "kind": self.kind.value,
            "text": self.text,
            "value": self.value,
            "start": self.start,
            "end": self.end,
        }


class SpanRank(Struct, frozen=True, kw_only=True):
    """How a piece of text ranks: its best capability and two scores of different meaning.

    `score` is the encoder's raw score, comparable between pieces of one message only;
    `similarity` is the calibrated probability in [0, 1]. `in_scope` is the scope floor's verdict.
    `capability` is None when nothing is registered.
    """

    capability: Capability | None
    score: float
    similarity: float
    in_scope: bool


Rank = Callable[[Sequence[str]], Awaitable[Sequence[SpanRank]]]
"""A ranking function: one SpanRank for each text, in order, encoded in one batch."""


class Piece(Struct, frozen=True, kw_only=True):
    """A stretch of the message that asks for one thing. `start`, `end` count its characters.

    `asked` is what stands for a text that is too long to be ranked. `antecedent` is what the piece
    refers to: "exchange it" means little without the sentence before. `advised` where a language model
    drew its borders; `suggested` is the capability that it named.
    """

    text: str
    start: int
    end: int
    asked: str | None = None
    antecedent: Entity | None = None
    advised: bool = False
    suggested: Capability | None = None

    @property
    def ranked(self) -> str:
        """The text by which its capability is found."""
        return self.text if self.asked is None else self.asked


class Decomposer(Protocol):
    """Splits a message into the things asked for."""

    async def split(self, message: str, rank: Rank) -> tuple[Piece, ...]:
        """At least one piece, at most MAX_INTENTS, in the order of the text, not overlapping.

        What is not in a piece is filler or connectives. More wishes than MAX_INTENTS: the rest
        stays in the last piece.
        """
        ...


class Source(Struct, frozen=True, kw_only=True):
    """Where an input field may come from: another intent's output field."""

    position: int
    """Position of the producing intent."""
    output: str
    """Name of the field in that intent's result data."""


class Link(Struct, frozen=True, kw_only=True):
    """One input field fed by another intent of the same plan."""

    field: str
    sources: tuple[Source, ...]
    required: bool


class Intent(Struct, frozen=True, kw_only=True):
    """One thing the user wants. `position` counts from 0 in the order asked.

    `capability` None means out of scope. `confidence` is the calibrated similarity in [0, 1].
    `inputs` are the fields already known; `links` the ones to wait for; `missing` the required
    ones nobody can give (the part will be `needs_input`), and `labels` say, in the same order,
    what to ask a person for.
    """

    position: int
    text: str
    capability: Capability | None
    confidence: float
    entities: tuple[Entity, ...] = ()
    inputs: dict[str, object] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    missing: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def waits_for(self) -> frozenset[int]:
        """Positions of the intents whose results this one wants first."""
        return frozenset(source.position for link in self.links for source in link.sources)


class Plan(Struct, frozen=True, kw_only=True):
    """All intents of one message; the links form no cycle."""

    intents: tuple[Intent, ...]
    language: str
