"""Reads a capability's input schema: its fields, where each may come from, what fits it.

Schemas come from agents: what is malformed in them is ignored, never an error. Understood are
`type`, `enum`, `const`, `$ref` into the same document, `anyOf`, `oneOf` and `allOf` (pydantic
writes an optional number as `anyOf: [number, null]`); other keywords don't restrict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dispatcher.identifiers import Capability
from dispatcher.intents.plan import EntityKind
from dispatcher.registry.schema_reference import followed

_DEPTH = 8
"""Alternatives opened, one within the other, before everything is said to fit."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (Mapping,),
    "array": (list, tuple),
}
"""`null` is missing on purpose: a null is never given."""

_NARROWING = frozenset({"enum", "const", "anyOf", "oneOf", "allOf"})
"""Keywords beside `type` that say what fits."""

_LABEL_CHARACTERS = 200

Schema = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputField:
    """One field of an input schema. `sources` are (capability, output field), preferred first."""

    name: str
    required: bool
    sources: tuple[tuple[Capability, str], ...]
    entity: EntityKind | None
    schema: Schema
    root: Schema

    @property
    def label(self) -> str:
        """What to ask a person for: the description, else the title, else the name in words.

        One line of at most 200 characters; the end of a longer one is cut off.
        """
        described = followed(self.schema, self.root)
        texts = described.get("description"), described.get("title"), self.name.replace("_", " "), self.name
        lines = (" ".join(text.split()) for text in texts if isinstance(text, str))
        return next((line[:_LABEL_CHARACTERS].rstrip() for line in lines if line), "")

    def fitted(self, value: object) -> object | None:
        """The value as the field wants it, None where its JSON type doesn't fit.

        A whole number written as float becomes an int for a field that takes integers only.
        """
        if _fits(self.schema, value, self.root, _DEPTH):
            return value
        if (
            isinstance(value, float)
            and value.is_integer()
            and _fits(self.schema, int(value), self.root, _DEPTH)
        ):
            return int(value)
        return None


def input_fields(schema: Schema) -> tuple[InputField, ...]:
    """The fields of an object schema, in its order."""
    top = followed(schema, schema)
    required = _sequence(top.get("required"))
    return tuple(
        InputField(
            name=name,
            required=name in required,
            sources=_sources(described),
            entity=_entity_kind(name, described),
            schema=described,
            root=schema,
        )
        for name, described in _mapping(top.get("properties")).items()
        if isinstance(described, Mapping)
    )


def _sources(described: Schema) -> tuple[tuple[Capability, str], ...]:
    written = described.get("x-from")
    names = [written] if isinstance(written, str) else _sequence(written)
    pairs = [name.split("/", 1) for name in names if isinstance(name, str) and "/" in name]
    return tuple(dict.fromkeys((Capability(capability), output) for capability, output in pairs))


def _entity_kind(name: str, described: Schema) -> EntityKind | None:
    wanted = described.get("x-entity", name)
    return next((kind for kind in EntityKind if kind == wanted), None)


def _fits(schema: Schema, value: object, root: Schema, depth: int) -> bool:
    if depth == 0:
        return True
    resolved = followed(schema, root)
    if not _has_type(resolved.get("type"), value):
        return False
    return _NARROWING.isdisjoint(resolved) or (
        _is_listed(resolved, value)
        and all(_fits(part, value, root, depth - 1) for part in _schemas(resolved, "allOf"))
        and _any_fits(resolved, value, root, depth - 1)
    )


def _any_fits(schema: Schema, value: object, root: Schema, depth: int) -> bool:
    for keyword in ("anyOf", "oneOf"):
        choices = _schemas(schema, keyword)
        if choices and not any(_fits(choice, value, root, depth) for choice in choices):
            return False
    return True


def _has_type(wanted: object, value: object) -> bool:
    if isinstance(wanted, str):
        return _is_a(wanted, value)
    names = _sequence(wanted)
    return not names or any(_is_a(name, value) for name in names)


def _is_a(name: object, value: object) -> bool:
    kinds = _KINDS.get(name) if isinstance(name, str) else None
    if kinds is None:
        return False
    return isinstance(value, kinds) and (name == "boolean" or not isinstance(value, bool))


def _is_listed(schema: Schema, value: object) -> bool:
    if "const" in schema and schema["const"] != value:
        return False
    listed = _sequence(schema.get("enum"))
    return not listed or value in listed


def _schemas(schema: Schema, keyword: str) -> list[Schema]:
    return [part for part in _sequence(schema.get(keyword)) if isinstance(part, Mapping)]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
