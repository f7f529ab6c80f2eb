"""Builds the plan: what each intent knows already, what it waits for, what nobody can give."""

from collections.abc import Mapping, Sequence

from dispatcher.identifiers import Capability
from dispatcher.intents.dependency import link_to, without_cycles
from dispatcher.intents.input_field import InputField
from dispatcher.intents.plan import Entity, EntityKind, Intent, Link, Piece, Plan
from dispatcher.records import Struct


class RankedPiece(Struct, frozen=True, kw_only=True):
    """A piece and the capability it was ranked to; None means out of scope. `similarity` is in [0, 1]."""

    piece: Piece
    capability: Capability | None
    similarity: float


def build_plan(
    pieces: Sequence[RankedPiece],
    *,
    fields: Mapping[Capability, Sequence[InputField]],
    entities: Sequence[Entity],
    context: Mapping[str, object],
    language: str,
) -> Plan:
    """The plan of a message; positions count the pieces in the order of the text.

    `fields` are those of the pieces' capabilities; one that is not in there wants nothing. A field
    is given by the caller's `context` (a field of the same name), else by an entity of its kind
    inside the piece or in what the piece refers to, else by the only one of its kind in the message.
    A given field waits for nobody. The others wait for the sources their schema names, as far as
    these are in the plan; a required one that has none is missing.
    """
    wanted = [fields.get(piece.capability, ()) if piece.capability else () for piece in pieces]
    given = [_given(own, piece.piece, entities, context) for own, piece in zip(wanted, pieces, strict=True)]
    links = _links(pieces, wanted, given)
    missing = [_missing(own, given[at], links[at]) for at, own in enumerate(wanted)]
    intents = tuple(
        Intent(
            position=position,
            text=ranked.piece.text,
            capability=ranked.capability,
            confidence=ranked.similarity,
            entities=_of(ranked.piece, entities),
            inputs=given[position],
            links=links[position],
            missing=tuple(field.name for field in missing[position]),
            labels=tuple(field.label for field in missing[position]),
        )
        for position, ranked in enumerate(pieces)
    )
    return Plan(intents=intents, language=language)


def _given(
    fields: Sequence[InputField], piece: Piece, entities: Sequence[Entity], context: Mapping[str, object]
) -> dict[str, object]:
    given: dict[str, object] = {}
    for field in fields:
        value = field.fitted(context[field.name]) if context.get(field.name) is not None else None
        if value is None and field.entity is not None:
            value = _from_entity(field, field.entity, piece, entities)
        if value is not None:
            given[field.name] = value
    return given


def _from_entity(
    field: InputField, kind: EntityKind, piece: Piece, entities: Sequence[Entity]
) -> object | None:
    """The first of the piece that fits; where the piece has none of its kind, the message's only one."""
    everywhere = [entity for entity in entities if entity.kind is kind]
    near = _inside(piece, everywhere) or (_inside(piece.antecedent, everywhere) if piece.antecedent else ())
    candidates = near or (everywhere if len(everywhere) == 1 else ())
    return next((value for entity in candidates if (value := field.fitted(entity.value)) is not None), None)


def _of(piece: Piece, entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Those inside, and what it refers to, for the agent that is given the piece alone."""
    inside = _inside(piece, entities)
    return inside if piece.antecedent is None else (piece.antecedent, *inside)


def _inside(stretch: Piece | Entity, entities: Sequence[Entity]) -> tuple[Entity, ...]:
    return tuple(one for one in entities if stretch.start <= one.start and one.end <= stretch.end)


def _links(
    pieces: Sequence[RankedPiece],
    fields: Sequence[Sequence[InputField]],
    given: Sequence[Mapping[str, object]],
) -> Mapping[int, tuple[Link, ...]]:
    capabilities = [piece.capability for piece in pieces]
    wanted = {
        position: tuple(
            link
            for field in own
            if field.sources
            and field.name not in given[position]
            and (link := link_to(field, position, capabilities))
        )
        for position, own in enumerate(fields)
    }
    return without_cycles(wanted) if any(wanted.values()) else wanted


def _missing(
    fields: Sequence[InputField], given: Mapping[str, object], links: Sequence[Link]
) -> tuple[InputField, ...]:
    linked = {link.field for link in links}
    return tuple(
        field for field in fields if field.required and field.name not in given and field.name not in linked
    )
