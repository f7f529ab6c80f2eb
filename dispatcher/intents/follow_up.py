"""Whether a message answers what was asked before: fills the missing fields if it can (pure)."""

from collections.abc import Mapping, Sequence

from dispatcher.intents.input_field import InputField, input_fields
from dispatcher.intents.plan import Entity, EntityKind

FREE_CHARACTERS = 64
"""A longer message is no bare answer."""
_BARE = frozenset({EntityKind.ORDER_NUMBER})
"""Kinds whose bare value, without the words around it, is not recognised as such in a message."""


def fill(
    schema: Mapping[str, object],
    fields: Sequence[str],
    message: str,
    entities: Sequence[Entity],
    *,
    in_scope: bool,
) -> dict[str, object] | None:
    """The values that the message gives for the fields; None where it doesn't answer.

    A field of an entity's kind takes the first entity that fits. One that is left takes the whole
    message if that is short and, by itself, nothing anybody here could do (`in_scope`). Without
    field names such a message is the answer, without values.
    """
    known = {one.name: one for one in input_fields(schema)}
    wanted = [known[name] for name in fields if name in known]
    found = _from_entities(wanted, entities)
    left = [one for one in wanted if one.name not in found]
    is_bare = not in_scope and 0 < len(message.strip()) <= FREE_CHARACTERS
    if is_bare and len(left) == 1 and not found:
        value = _free_value(left[0], message.strip())
        if value is not None:
            found[left[0].name] = value
    if found or (is_bare and not wanted):
        return found
    return None


def _from_entities(wanted: Sequence[InputField], entities: Sequence[Entity]) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in wanted:
        values = (one.fitted(entity.value) for entity in entities if entity.kind is one.entity)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            found[one.name] = value
    return found


def _free_value(field: InputField, text: str) -> object | None:
    if field.entity is not None and field.entity not in _BARE:
        return None
    fitted = field.fitted(text)
    if fitted is not None:
        return fitted
    try:
        return field.fitted(float(text))
    except ValueError:
        return None
